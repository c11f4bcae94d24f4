/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_FOLLOW_H
#define TDT_SRC_CAPTURE_FOLLOW_H

/*
 * Stepping from a frame that no rule describes, in the copy of a stack: its unwind information
 * needs registers that a walk does not keep.
 *
 * A thread that was interrupted by our signal reported all its registers.  So they are known in the
 * innermost frame, and in an outer one as far as the frames inside of it saved them, or left them
 * alone.
 */

#include <config.h>

#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

struct tdt__stack_copy;

/*
 * `registers` are those of the innermost frame of the copy, by their DWARF numbers; NULL: they are
 * not known.  `at` is the frame to step from.  On success the walk is at its caller, `*frame` is
 * the frame, `*walked` is as tdt__stack_copy_next() would return it, and the result is true.
 * Otherwise the walk is as it was.  Takes tdt__unwind_lock.
 */
#if TDT_WALK_RULES
bool tdt__follow(const struct tdt__stack_copy *copy, const uintptr_t *registers, struct tdt__walk *walk,
		 struct tdt__registers at, struct tdt__frame *frame, enum tdt__walked *walked);
#else
static inline bool tdt__follow(const struct tdt__stack_copy *copy, const uintptr_t *registers, struct tdt__walk *walk,
			       struct tdt__registers at, struct tdt__frame *frame, enum tdt__walked *walked)
{
	(void)copy;
	(void)registers;
	(void)walk;
	(void)at;
	(void)frame;
	(void)walked;
	return false;
}
#endif

#endif
