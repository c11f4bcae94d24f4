// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See fibered.h. */

#include <config.h>

#include "lib/fibered.h"

#include <sys/mman.h>

#include <tdt/future.h>

#include "lib/must.h"

/* tdt__context_make() passes nothing to the function that it enters. */
static __thread struct fibered *entering;

static __attribute__((noinline)) struct fibered *entered(void)
{
	return entering;
}

static void fibered_entry(void)
{
	struct fibered *it = entered();

	tdt__san_entered(&it->resumer_san, &it->san);
	if (!it->mute_base)
		TDT_FIBER_BASE(it->fiber);
	tdt_fiber_resume(it->fiber);
	it->run(it);
	if (!it->mute_end) {
		tdt_fiber_end(it->fiber);
		it->fiber = NULL;
	}
	it->ended = true;
	tdt__san_leave(&it->resumer_san, &it->san, 1);
	tdt__context_switch(&it->inside, &it->resumer);
	__builtin_unreachable();
}

static void make_stack(struct fibered *it)
{
	it->stack = mmap(NULL, FIBERED_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	MUST(it->stack != MAP_FAILED);
	it->ended = false;
	tdt__san_init(&it->san, it->stack, FIBERED_STACK);
	tdt__context_make(&it->inside, it->stack, FIBERED_STACK, fibered_entry);
}

void fibered_init(struct fibered *it, const struct tdt_task_attr *attr)
{
	make_stack(it);
	it->fiber = tdt_fiber_new(it->stack, FIBERED_STACK, attr);
	MUST(it->fiber != NULL);
}

void fibered_init_of(struct fibered *it, struct tdt_handle *task)
{
	make_stack(it);
	it->fiber = tdt_fiber_of(task, it->stack, FIBERED_STACK);
	MUST(it->fiber != NULL);
}

void fibered_fini(struct fibered *it)
{
	tdt_fiber_end(it->fiber);
	it->fiber = NULL;
	tdt__san_fini(&it->san);
	munmap(it->stack, FIBERED_STACK);
}

void fibered_resume(struct fibered *it)
{
	entering = it;
	tdt__san_enter(&it->resumer_san, &it->san);
	tdt__context_switch(&it->resumer, &it->inside);
	tdt__san_left(&it->resumer_san);
}

__attribute__((noinline)) void fibered_switch_away(struct fibered *it)
{
	tdt__san_leave(&it->resumer_san, &it->san, 0);
	tdt__context_switch(&it->inside, &it->resumer);
	tdt__san_entered(&it->resumer_san, &it->san);
}

__attribute__((noinline)) void fibered_yield(struct fibered *it)
{
	tdt_fiber_suspend(it->fiber);
	fibered_switch_away(it);
	tdt_fiber_resume(it->fiber);
}
