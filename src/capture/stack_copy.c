// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Determining what of a stack is to be copied. */

#include "capture/stack_copy.h"

#include <errno.h>

size_t tdt__stack_copy_extent(struct tdt__stack_copy *copy, size_t room)
{
	uintptr_t end = copy->top + TDT__TOP_RECORD;

	copy->low = (copy->at.sp - TDT__RED_ZONE) & ~(uintptr_t)15;
	copy->end = TDT_CUT_NOT;
	if (copy->at.sp >= end) {
		/*
		 * The thread is on another stack than the traced future.  Where that stack ends is
		 * not known.
		 */
		end = copy->low + room;
		copy->end = TDT_CUT_STACK;
	} else if (end - copy->low > room) {
		end = copy->low + room;
		copy->end = TDT_CUT_LIMIT;
	}
	return end - copy->low;
}

int tdt__stack_copy_got(struct tdt__stack_copy *copy, size_t wanted, size_t got)
{
	copy->size = got & ~(size_t)7;
	if (copy->low + copy->size < copy->at.sp + sizeof(uintptr_t))
		return -EFAULT;
	if (got < wanted && copy->end != TDT_CUT_STACK)
		copy->end = TDT_CUT_CORRUPT;
	return 0;
}
