// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Reading the stacks that a thread has entered.  Their structs belong to the host, so they may say
 * anything.
 */

#include "reader/entered.h"

#include <string.h>

bool tdt__thread_registered(const struct tdt__target *target, const struct tdt_registry *registry,
			    uint32_t id, struct tdt_registry_thread *thread)
{
	uint64_t address;

	return registry->n_threads != 0 &&
	       tdt__target_read(target,
				registry->threads + id % registry->n_threads * sizeof address,
				&address, sizeof address) &&
	       tdt__target_read(target, address, thread, sizeof *thread) && thread->id == id;
}

void tdt__entered_read(struct tdt__entered *entered, const struct tdt__target *target,
		       const struct tdt_registry *registry, uint32_t id)
{
	struct tdt_registry_thread thread;
	uint64_t at = tdt__thread_registered(target, registry, id, &thread) ? thread.entered : 0;

	memset(entered, 0, sizeof *entered);
	while (at != 0 && entered->n < TDT__ENTERED_MAX &&
	       tdt__target_read(target, at, &entered->stack[entered->n],
				sizeof entered->stack[0]))
		at = (uintptr_t)entered->stack[entered->n++].outer;
}

static bool is_on(const struct tdt_stack *stack, uint64_t address)
{
	return address - (uintptr_t)stack->low < stack->size;
}

const struct tdt_stack *tdt__entered_at(const struct tdt__entered *entered, uint64_t sp,
					uint64_t top)
{
	for (unsigned i = 0; i < entered->n; i++)
		if (is_on(&entered->stack[i], sp))
			return is_on(&entered->stack[i], top - 1) && sp < top
				       ? NULL
				       : &entered->stack[i];
	return NULL;
}

bool tdt__entered_same(const struct tdt__entered *a, const struct tdt__entered *b)
{
	if (a->n != b->n)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->stack[i].low != b->stack[i].low || a->stack[i].entry != b->stack[i].entry)
			return false;
	return true;
}
