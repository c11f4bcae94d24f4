/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SWITCH_H
#define TDT_SRC_SWITCH_H

/* From one stack to another, on the same thread. */

#include <stddef.h>
#include <ucontext.h>

/* Where a stack was left. */
struct tdt__context {
	ucontext_t place;
};

/* One that calls `entry` on the stack [low, low + size) when it is first switched to.  `entry` never returns. */
void tdt__context_make(struct tdt__context *context, void *low, size_t size, void (*entry)(void));

/* Leave this stack, to go on in `to`.  Returns when somebody switches to `from`, perhaps on another thread. */
void tdt__context_switch(struct tdt__context *from, struct tdt__context *to);

#endif
