/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_WALK_H
#define TDT_SRC_UNWIND_WALK_H

/*
 * From one frame of this thread's stack to the next outer one, within bounds.
 *
 * A walk starts with the registers of a frame and yields frames until it is at `top`, the mark of the traced future's
 * own frame (registers.h).  Every CFA it yields is above the one before, and every word it reads lies between the first
 * frame's sp and `top`: where those are one readable piece of stack (readable.h), a walk can't fault, whatever lies there.
 *
 * Two ways to do it: walk_rules.h where there are rules (x86-64), walk_step.h by libunwind's own cursor elsewhere.  The
 * slow one is also the reference the tests hold the fast one to.
 */

#include <config.h>

#include <stdbool.h>
#include <stdint.h>

#include <tdt/tree.h>

#include "tree/stacks.h"
#include "unwind/registers.h"

/*
 * A walk may also be made of a copy of another thread's stack (tdt__walk_start_copied()), whose innermost frame has
 * called nothing: its `pc` is one more than where it is, so that it is looked up where it is like all others.  Nothing
 * is read outside of [sp - TDT__RED_ZONE, top + TDT__TOP_RECORD).  A frame pointer that isn't known is TDT__NO_FP, which
 * no rule can use: a walk that needs it is cut.
 */
#if defined(__x86_64__)
#define TDT__RED_ZONE ((uintptr_t)128) /* below sp a function may keep things, if it calls nothing */
#else
#define TDT__RED_ZONE ((uintptr_t)0)
#endif
#define TDT__NO_FP ((uintptr_t)1)

enum tdt__walked {
	TDT__WALK_FRAME, /* here is a frame, and there is more */
	TDT__WALK_TOP,   /* the next frame is the traced future's own */
	TDT__WALK_CUT    /* it goes no further: why is in the walk */
};

#define TDT__LEARNS_ALL UINT32_MAX /* a walk may learn whatever it meets */

#if TDT_WALK_RULES
#include "unwind/walk_rules.h"
#else
#include "unwind/walk_step.h"
#endif

#endif
