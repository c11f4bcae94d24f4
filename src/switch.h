/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SWITCH_H
#define TDT_SRC_SWITCH_H

/*
 * From one stack to another, on the same thread.  Registers that a call preserves are, and the modes of the FPU; the
 * thread's signal mask is not touched.
 *
 * By the C library's contexts, of which each switch is two system calls; or, on x86-64, by some instructions.  Not those
 * where this code is compiled for shadow stacks, which only the C library can switch: what is not compiled for them is
 * not marked so, and they are off in its process.
 */

#include <stddef.h>

#if defined(__x86_64__) && !(defined(__CET__) && __CET__ & 2)
#define TDT__SWITCH_BY_CONTEXT 0
#else
#define TDT__SWITCH_BY_CONTEXT 1
#include <ucontext.h>
#endif

/* Where a stack was left. */
struct tdt__context {
#if TDT__SWITCH_BY_CONTEXT
	ucontext_t place;
#else
	void *sp;
#endif
};

/* One that calls `entry` on the stack [low, low + size) when it is first switched to.  `entry` never returns. */
void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void));

/* Leave this stack, to go on in `to`.  Returns when somebody switches to `from`, perhaps on another thread. */
void tdt__context_switch(struct tdt__context *from, struct tdt__context *to);

#endif
