/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Walking the copy of a stack with libdwfl, which takes the unwind information from the files. */

#include "reader/images.h"
#include "reader/threads.h"

struct Dwfl;
struct tdt__stacks;

#define TDT__WALK_FRAMES_MAX 512

/* All zero but `images` at first. */
struct tdt__walker {
	struct tdt__images *images;
	/* `poll` of the task's record, which the library calls.  0: the task is a fiber. */
	uint64_t poll;
	struct Dwfl *dwfl;
	/* Of the walk that goes on. */
	const struct tdt__stack *stack;
	struct tdt__cpu cpu; /* to begin with */
	uint64_t limit;      /* the first address that is not read */
	bool at_limit;	     /* the walk came to it */
	/*
	 * The highest address that was read for a frame, and for those before it.  Frames lie one
	 * above the other, so nothing below `passed` is read any more.
	 */
	uint64_t highest, passed;
	uint64_t pc[TDT__WALK_FRAMES_MAX];
	uint32_t n;
};

/*
 * Walk the stack up to `top`, where the task's future was polled; 0: up to its outermost frame.
 * Returns the stacks, with one leaf, which the caller frees.  NULL: not even the first frame is
 * known, or there is no memory.
 */
struct tdt__stacks *tdt__walk_stack(struct tdt__walker *walker, const struct tdt__stack *stack,
				    uint64_t top);
void tdt__walker_fini(struct tdt__walker *walker);

/* Whether a walk came to where it was to end. */
bool tdt__walk_is_whole(const struct tdt__stacks *stacks);

/*
 * Join the stacks of two walks, of which `inner` is whole, and `outer` goes on where that stack was
 * entered.  Takes both over.  If `outer` is NULL, or without memory, the result is `inner` with a
 * mark that it was cut.
 */
struct tdt__stacks *tdt__walk_join(struct tdt__stacks *inner, struct tdt__stacks *outer);
