// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See switched.h. */

#include <config.h>

#include "lib/switched.h"

#include <sys/mman.h>

#include "lib/must.h"

static const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

static void ignore(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable vtable = { clone_itself, ignore, ignore, ignore };
static const struct tdt_waker nobody = { &vtable };

static tdt_poll_t switched_poll(void *state, struct tdt_context *cx)
{
	struct switched *co = state;

	co->act(co, cx);
	TDT_KEEP_FRAME();
	return co->result;
}

static void drop_nothing(void *state)
{
	(void)state;
}

/* makecontext() passes numbers of type int alone. */
static struct switched *entering;

static void entry(void)
{
	struct switched *co = entering;
	struct tdt_context cx = { &nobody };

	tdt__san_entered(&co->resumer_san, &co->san);
	MUST(tdt_future_poll(&co->traced.future, &cx) == co->result);
	co->ended = true;
	tdt__san_leave(&co->resumer_san, &co->san, 1);
	swapcontext(&co->context, &co->resumer);
}

void switched_init(struct switched *co, char *stack)
{
	co->stack = stack;
	co->traced = tdt_traced(((struct tdt_future){ co, switched_poll, drop_nothing }));
	MUST(co->traced.handle != NULL);
	tdt__san_init(&co->san, stack, SWITCHED_STACK);
	MUST(getcontext(&co->context) == 0);
	co->context.uc_stack.ss_sp = stack;
	co->context.uc_stack.ss_size = SWITCHED_STACK;
	makecontext(&co->context, entry, 0);
}

void switched_fini(struct switched *co)
{
	tdt_future_drop(&co->traced.future);
	tdt_handle_unref(co->traced.handle);
	tdt__san_fini(&co->san);
}

void switched_resume(struct switched *co)
{
	entering = co;
	tdt__san_enter(&co->resumer_san, &co->san);
	swapcontext(&co->resumer, &co->context);
	tdt__san_left(&co->resumer_san);
}

void switched_away(struct switched *co)
{
	tdt__san_leave(&co->resumer_san, &co->san, 0);
	swapcontext(&co->context, &co->resumer);
	tdt__san_entered(&co->resumer_san, &co->san);
}

char *switched_stacks(unsigned n)
{
	void *memory = mmap(NULL, n * SWITCHED_STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(memory != MAP_FAILED);
	return memory;
}
