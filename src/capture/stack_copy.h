/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_STACK_COPY_H
#define TDT_SRC_CAPTURE_STACK_COPY_H

/* A copy of what a running poll has on one stack, and the walk of it: a piece of what stack_pieces.h makes. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/tree.h>

#include "unwind/registers.h"
#include "unwind/walk.h"

struct tdt__capture;

/* More of a stack is not looked at. */
#define TDT__STACK_COPY_MAX ((size_t)1 << 20)

/* A piece that has room for less is not worth the trouble. */
#define TDT__STACK_COPY_LEAST ((size_t)1 << 10)

struct tdt__stack_copy {
	struct tdt__registers at; /* fp may be TDT__NO_FP; pc is where it is, no return address */
	uintptr_t top;		  /* of the traced future's own frame, or of the outermost on its stack */
	uintptr_t low;		  /* the address of bytes[0]: at most at.sp - TDT__RED_ZONE; a multiple of 16 */
	size_t size;
	enum tdt_cut end;     /* why it ends before `top`: TDT_CUT_NOT: it doesn't */
	uintptr_t poll;	      /* the function that was called by whose frame begins at `top`; 0: unknown */
	bool entered;	      /* `top` is where the outermost frame of a stack ends that was entered */
	bool doubtful;	      /* `top` may be on another stack: take no step that isn't sure */
	uint16_t level;	      /* as in struct tdt__frame */
	unsigned char *bytes;
};

/* What of the stack there is to be copied, given `at` and `top`: sets `low` and `end`, and returns the size. */
size_t tdt__stack_copy_extent(struct tdt__stack_copy *copy, size_t room);

/*
 * What `wanted` bytes of the extent have become `got`: beyond lies what can't be read.  -EFAULT: not even the
 * innermost frame could.
 */
int tdt__stack_copy_got(struct tdt__stack_copy *copy, size_t wanted, size_t got);

/* Have the walk be at a frame of the copy. */
static inline void tdt__stack_copy_walk(const struct tdt__stack_copy *copy, struct tdt__walk *walk,
					struct tdt__registers at)
{
	/* What comes after the end of a copy that doesn't reach the top is at no address a frame can end at. */
	uintptr_t top = copy->end == TDT_CUT_NOT ? copy->top : copy->low + copy->size - TDT__TOP_RECORD - 7;

	tdt__walk_start_copied(walk, at, top, (intptr_t)copy->bytes - (intptr_t)copy->low);
}

/*
 * As tdt__walk_next(); but a frame that is said to lead to the top by a guess comes with TDT__WALK_TOP, and is not the
 * traced future's own.
 */
static inline enum tdt__walked tdt__stack_copy_next(const struct tdt__stack_copy *copy, struct tdt__walk *walk,
						    struct tdt__frame *frame)
{
	enum tdt__walked walked = tdt__walk_next_copied(walk, frame);

	if (walked == TDT__WALK_FRAME && frame->guessed && frame->cfa == walk->top)
		return TDT__WALK_TOP;
	if (walked == TDT__WALK_TOP && copy->end != TDT_CUT_NOT) {
		walk->cut = TDT_CUT_CORRUPT;
		return TDT__WALK_CUT;
	}
	return walked;
}

/*
 * Walk the copy from `at`, and add its frames to the leaf that was begun.  Returns whether it was walked to its top, and
 * the leaf goes on outside of it; else the leaf has ended.  `registers`: see follow.h.  `last`: the top is the traced
 * future's own.
 */
bool tdt__stack_copy_capture(const struct tdt__stack_copy *copy, struct tdt__registers at, const uintptr_t *registers,
			     bool last, struct tdt__capture *capture);

#endif
