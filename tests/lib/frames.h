/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_FRAMES_H
#define TDT_TESTS_FRAMES_H

/* Functions with frames of all kinds, each of which calls on: frames.c, compiled in many ways. */

#include <stdint.h>

struct frames {
	void (*next)(struct frames *frames); /* what each of them calls */
	uint64_t random;
	unsigned depth;
};

typedef void (*frames_fn)(struct frames *frames);

static inline unsigned frames_random(struct frames *frames, unsigned below)
{
	frames->random ^= frames->random << 13;
	frames->random ^= frames->random >> 7;
	frames->random ^= frames->random << 17;
	return (unsigned)(frames->random >> 20) % below;
}

/* FRAMES_TABLE: the name of this build's; it ends with NULL. */
#ifndef FRAMES_TABLE
#define FRAMES_TABLE frames_table
#endif
extern const frames_fn FRAMES_TABLE[];

#endif
