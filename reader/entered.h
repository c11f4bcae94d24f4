/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The stacks that a thread of the target has entered: coroutines on stacks of their own, each of
 * which was entered from the next outer one (tdt_stack_enter() in <tdt/integrate/stack.h>).
 */

#include <tdt/integrate/stack.h>
#include <tdt/layout/registry.h>

#include "reader/target.h"

#define TDT__ENTERED_MAX 16

struct tdt__entered {
	struct tdt_stack stack[TDT__ENTERED_MAX]; /* the innermost first */
	unsigned n;
};

/* Read what the thread with this id says of itself.  False: it is not known. */
bool tdt__thread_registered(const struct tdt__target *target, const struct tdt_registry *registry,
			    uint32_t id, struct tdt_registry_thread *thread);

/* Read the stacks that the thread `id` has entered, as far as they can be read. */
void tdt__entered_read(struct tdt__entered *entered, const struct tdt__target *target,
		       const struct tdt_registry *registry, uint32_t id);

/*
 * The innermost entered stack that `sp` is on, unless `top` lies on the same stack above it.  NULL:
 * there is none.
 */
const struct tdt_stack *tdt__entered_at(const struct tdt__entered *entered, uint64_t sp,
					uint64_t top);

/* Whether the two were read at times between which the thread entered and left no stack. */
bool tdt__entered_same(const struct tdt__entered *a, const struct tdt__entered *b);
