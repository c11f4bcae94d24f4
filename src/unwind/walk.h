/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Walking from one frame of this thread's stack to the next outer one, within bounds.
 *
 * A walk starts with the registers of a frame and yields frames until it reaches `top`, the mark of
 * the traced future's own frame (registers.h).  Each CFA that it yields is above the previous CFA.
 * Each word that it reads lies between the first frame's sp and `top`.  So if that range is one
 * readable piece of stack (readable.h), the walk can't fault, whatever the range holds.
 *
 * The walk is by rules (walk_rules.h).  `make check-step` has the tests' reference in its place, a
 * walk by libunwind's own cursor.
 */

#include <stdint.h>

#include "tree/stacks.h"
#include "unwind/registers.h"

/*
 * A walk may also go over a copy of another thread's stack (tdt__walk_start_copied()).  The
 * innermost frame there has made no call.  Its `pc` is the present address plus one, because
 * look-ups subtract one from return addresses.  Nothing is read outside of
 * [sp - TDT__RED_ZONE, top + TDT__TOP_RECORD).  An unknown frame pointer is TDT__NO_FP, which no
 * rule can use: a walk that needs the frame pointer is cut.
 */
#define TDT__NO_FP ((uintptr_t)1)

enum tdt__walked {
	TDT__WALK_FRAME, /* the walk yielded a frame, and can go on */
	TDT__WALK_TOP,   /* the walk has reached the traced future's own frame */
	TDT__WALK_CUT    /* the walk can't go on; its `cut` says why */
};

#define TDT__LEARNS_ALL UINT32_MAX /* a walk may learn all PCs that are new */

/*
 * A walk reads words of the stack that lie between variables, where a sanitizer reports an error.
 * So tdt__word_at() must not be instrumented.  Clang instruments a function that is inlined by
 * force (tdt__walk_step_out()) as it does the caller, in spite of no_sanitize.  So in Clang's
 * sanitized builds tdt__word_at() is never inlined.
 */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TDT__UNINSTRUMENTED __attribute__((noinline, no_sanitize("address", "thread")))
#endif
#endif
#ifndef TDT__UNINSTRUMENTED
#define TDT__UNINSTRUMENTED __attribute__((no_sanitize("address", "thread")))
#endif

static inline TDT__UNINSTRUMENTED uintptr_t tdt__word_at(uintptr_t address)
{
	return *(const volatile uintptr_t *)address;
}

#include "unwind/walk_rules.h"
