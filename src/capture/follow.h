/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Stepping, in the copy of a stack, from a frame that no rule describes: the frame's unwind
 * information needs registers that a walk does not keep.
 *
 * If the thread was interrupted by our signal, all its registers were copied.  So they are known in
 * the innermost frame.  In an outer frame, a register is known if each frame inside it has saved
 * the register or left it unchanged.
 */

#include <stdbool.h>
#include <stdint.h>

#include "unwind/walk.h"

struct tdt__stack_copy;

/*
 * Step from frame `at`.  `registers` are those of the innermost frame of the copy, by their DWARF
 * numbers; NULL: they are not known.
 *
 * Returns true on success: then the walk is at the caller, `*frame` is the frame, and `*walked` is
 * what tdt__stack_copy_next() would return.  On failure the walk is unchanged.  Takes
 * tdt__unwind_lock.
 */
bool tdt__follow(const struct tdt__stack_copy *copy, const uintptr_t *registers,
		 struct tdt__walk *walk, struct tdt__registers at, struct tdt__frame *frame,
		 enum tdt__walked *walked);
