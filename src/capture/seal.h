/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A seal on the outer frames that the leaves of a poll share.  It shows whether these frames are
 * still on the stack, unchanged since they were walked, without a look at the frames' records.
 *
 * A walk that reaches the innermost of these frames would meet all the others again if the words
 * that it would read there are unchanged: return addresses, saved frame pointers, and CFAs that lie
 * in memory.  In code that keeps a frame pointer, the first two lie side by side.  So the words are
 * compared in pairs, and a mask excludes a word of a pair that does not matter.  This takes eight
 * instructions for each frame, none of which waits for another; a comparison record by record takes
 * eighteen.
 */

#include <stdint.h>

#include "capture/capture.h"

#define TDT__SEAL_PAIRS 48

typedef uintptr_t tdt__pair __attribute__((vector_size(16)));

struct tdt__sealed {
	tdt__pair were;
	tdt__pair mask;  /* the bits that matter */
	uintptr_t at;    /* the address of the pair */
	uint32_t frame;  /* the frame whose walk reads the pair */
};

/*
 * A seal lies on the stack of the polling thread while the poll lasts, so it needs no allocation,
 * and no room in captures that are kept.  Frames for which it has no room are compared record by
 * record.
 */
struct tdt__seal {
	uint32_t n;      /* the number of pairs; the others are not initialized */
	uint32_t first;  /* the frame that tdt__seal_set() was last called for */
	uint32_t beyond; /* where the seal ends: a frame, or what follows the last frame */
	struct tdt__sealed pair[TDT__SEAL_PAIRS];
};

static inline void tdt__seal_init(struct tdt__seal *seal)
{
	seal->n = 0;
	seal->first = TDT__NO_FRAME;
}

/*
 * Frame `index` and all frames outside it are unchanged.  Seal them if the previous call was for
 * the same frame.
 */
void tdt__seal_set(struct tdt__seal *seal, struct tdt__capture *capture, uint32_t index);

/*
 * Where to continue to check that frame `index` and all frames outside it are unchanged: beyond the
 * seal, or at `index` itself if that frame is not sealed or the seal is broken.
 */
static inline __attribute__((no_sanitize("address", "thread"))) uint32_t
tdt__seal_skip(const struct tdt__seal *seal, const struct tdt__recorded *frames, uint32_t index)
{
	typedef tdt__pair unaligned __attribute__((aligned(8), may_alias));
	const struct tdt__sealed *pair = &seal->pair[frames[index].frame.sealed],
				 *end = &seal->pair[seal->n];
	tdt__pair changed = { 0, 0 };

	if (pair >= end || pair->frame != index)
		return index;
	for (; pair < end; pair++)
		changed |= (*(const volatile unaligned *)pair->at ^ pair->were) & pair->mask;
	return (changed[0] | changed[1]) == 0 ? seal->beyond : index;
}
