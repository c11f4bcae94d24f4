/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Switching from one stack to another, on the same thread.  The registers that a call preserves are
 * preserved, and so are the modes of the FPU.  The thread's signal mask is not touched.
 *
 * A few instructions do it (switch.S of the architecture).  They do not switch shadow stacks, so
 * the library is marked as code that can't run with them.
 */

#include <stddef.h>

#include "unwind/registers.h"

/* Where a stack was left. */
struct tdt__context {
	void *sp;
};

/*
 * Make a context that calls `entry` on the stack [low, low + size) when it is first entered.
 * `entry` never returns.
 */
void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void));

/*
 * Leave this stack, and go on in `to`.  Returns when a thread, perhaps another one, switches to
 * `from`.
 */
void tdt__context_switch(struct tdt__context *from, struct tdt__context *to);

/*
 * The registers of the frame that will go on when a thread switches to `context`, which was left.
 * `pc` is a return address.
 */
struct tdt__registers tdt__context_registers(const struct tdt__context *context);
