/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * An arena: memory that is freed all at once.  A struct of all zeros is an empty arena.  An arena
 * has no lock: only one thread at a time may use it.
 */

#include <stddef.h>

struct tdt__arena {
	struct tdt__arena_chunk *chunk; /* the newest chunk, from which memory is taken */
};

/*
 * Returns `size` bytes, aligned for any type.  NULL: no memory; what was taken before stays valid.
 */
void *tdt__arena_take(struct tdt__arena *arena, size_t size);

/* Returns a copy of `n` bytes (0: `bytes` may be NULL) and a NUL.  NULL: no memory. */
char *tdt__arena_text(struct tdt__arena *arena, const void *bytes, size_t n);
void tdt__arena_fini(struct tdt__arena *arena);
