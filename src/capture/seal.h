/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_SEAL_H
#define TDT_SRC_CAPTURE_SEAL_H

/*
 * A seal on the outer frames that the leaves of a poll share: what tells whether they are on the stack still, as they were
 * when they were walked, without going through the records of the frames.
 *
 * A walk that comes to the innermost of these frames would meet all others again if the words that it would read there are
 * the same: return addresses, saved frame pointers, and CFAs that lie in memory.  Code that keeps a frame pointer has the
 * first two side by side.  So the words are compared in pairs, of which one may not matter: eight instructions a frame,
 * none of which waits for another, where it takes eighteen to compare record by record.
 */

#include <stdint.h>

#include "capture/capture.h"

#define TDT__SEAL_PAIRS 48

typedef uintptr_t tdt__pair __attribute__((vector_size(16)));

struct tdt__sealed {
	tdt__pair were;
	tdt__pair mask;  /* of the bits that matter */
	uintptr_t at;    /* the pair's address */
	uint32_t frame;  /* whose walk reads it */
};

/*
 * It lives on the poller's stack, as long as the poll: there it takes no allocation, nor room in captures that are kept.
 * What is beyond its room is compared record by record.
 */
struct tdt__seal {
	uint32_t n;      /* how many pairs there are; the others are not initialized */
	uint32_t first;  /* the frame it was to be set from last */
	uint32_t beyond; /* the frame it doesn't go on to any more, or what comes after the last frame */
	struct tdt__sealed pair[TDT__SEAL_PAIRS];
};

static inline void tdt__seal_init(struct tdt__seal *seal)
{
	seal->n = 0;
	seal->first = TDT__NO_FRAME;
}

/* Frame `index` and all outside of it are as they were: seal them from the second time on. */
void tdt__seal_set(struct tdt__seal *seal, struct tdt__capture *capture, uint32_t index);

/*
 * Where to go on to see whether frame `index` and all outside of it are as they were: at `index` itself if it isn't
 * sealed, or the seal is broken.
 */
static inline __attribute__((no_sanitize("address", "thread"))) uint32_t
tdt__seal_skip(const struct tdt__seal *seal, const struct tdt__recorded *frames, uint32_t index)
{
	typedef tdt__pair unaligned __attribute__((aligned(8), may_alias));
	const struct tdt__sealed *pair = &seal->pair[frames[index].frame.sealed], *end = &seal->pair[seal->n];
	tdt__pair changed = { 0, 0 };

	if (pair >= end || pair->frame != index)
		return index;
	for (; pair < end; pair++)
		changed |= (*(const volatile unaligned *)pair->at ^ pair->were) & pair->mask;
	return (changed[0] | changed[1]) == 0 ? seal->beyond : index;
}

#endif
