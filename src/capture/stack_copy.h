/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A copy of the part of one stack that a running poll uses, and a single step in it.  It is one of
 * the pieces of stack_pieces.h; walk_copy.h walks it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/tree.h>

#include "unwind/registers.h"
#include "unwind/walk.h"

/* The most bytes of a stack that are copied. */
#define TDT__STACK_COPY_MAX ((size_t)1 << 20)

/* If there is room for fewer bytes than this, no further piece is copied. */
#define TDT__STACK_COPY_LEAST ((size_t)1 << 10)

struct tdt__stack_copy {
	struct tdt__registers at; /* pc is not a return address; fp may be TDT__NO_FP */
	/*
	 * Where the traced future's own frame begins; or, on an entered stack, where the outermost
	 * frame ends.
	 */
	uintptr_t top;
	/* The address of bytes[0]: a multiple of 16, and at most at.sp - TDT__RED_ZONE. */
	uintptr_t low;
	size_t size;
	enum tdt_cut end;     /* why the copy ends before `top`; TDT_CUT_NOT: it does not */
	/* The function called by the frame that begins at `top`; 0: unknown. */
	uintptr_t poll;
	bool entered;	      /* `top` is the end of the outermost frame on an entered stack */
	bool of_fiber;	      /* a frame without a caller is the outermost on the stack */
	bool doubtful;	      /* `top` may be on another stack: only certain steps are taken */
	uint16_t level;	      /* as in struct tdt__frame */
	unsigned char *bytes;
};

/* Set `low` and `end`, given `at` and `top`.  Returns how many bytes to copy from `low` on. */
size_t tdt__stack_copy_extent(struct tdt__stack_copy *copy, size_t room);

/*
 * `got` of the `wanted` bytes were copied; those behind them cannot be read.  Returns 0, or
 * -EFAULT: not even the innermost frame was copied.
 */
int tdt__stack_copy_got(struct tdt__stack_copy *copy, size_t wanted, size_t got);

/* Set the walk to frame `at` of the copy. */
static inline void tdt__stack_copy_walk(const struct tdt__stack_copy *copy, struct tdt__walk *walk,
					struct tdt__registers at)
{
	/*
	 * If the copy does not reach its top, the walk ends at the end of the copy, at an address
	 * where no frame can end: the 7 makes it unaligned.
	 */
	uintptr_t top = copy->end == TDT_CUT_NOT ?
				copy->top :
				copy->low + copy->size - TDT__TOP_RECORD - 7;

	tdt__walk_start_copied(walk, at, top, (intptr_t)copy->bytes - (intptr_t)copy->low);
}

/*
 * As tdt__walk_next().  But if a guessed step leads to the top, the frame is returned with
 * TDT__WALK_TOP too; then it is not the traced future's own.
 */
static inline enum tdt__walked tdt__stack_copy_next(const struct tdt__stack_copy *copy,
						    struct tdt__walk *walk,
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
