/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_BASE_ARENA_H
#define TDT_SRC_BASE_ARENA_H

/* Memory that is given back all at once.  All zero is an empty one.  For one thread at a time. */

#include <stddef.h>

struct tdt__arena {
	struct tdt__arena_chunk *chunk; /* the newest: what is given out next lies there */
};

/* `size` bytes, aligned for anything.  NULL: no memory; what was given out stays. */
void *tdt__arena_take(struct tdt__arena *arena, size_t size);
void tdt__arena_fini(struct tdt__arena *arena);

#endif
