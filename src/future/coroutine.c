// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Coroutines.  Each has one mapping: a guard area that can't be touched, the stack above it, and at
 * the upper end, which an overflow does not reach, the record of the coroutine.
 *
 * A coroutine may be left on one thread and resumed on another.  So code that runs on its stack
 * reads the thread's variables only in functions that are not inlined: a compiler takes for granted
 * that a function stays on its thread.  The code that polls a coroutine does stay on its thread,
 * even if it runs on the stack of another coroutine: that coroutine is not left before the poll is
 * over.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tdt/coroutine.h>
#include <tdt/integrate/fiber.h>
#include <tdt/integrate/stack.h>

#include "base/leaf_poll.h"
#include "base/options.h"
#include "base/result.h"
#include "capture/chain.h"
#include "capture/fiber.h"
#include "capture/interrupt.h"
#include "future/sanitizers.h"
#include "future/switch.h"
#include "host/thread.h"
#include "task/fibers.h"
#include "unwind/registers.h"

/*
 * The size of the guard area below a stack, which takes address space but no memory.  One page
 * would not do: libdw has frames of many pages, which leap over a page into whatever lies below.
 */
#define GUARD ((size_t)256 << 10)

enum state { FRESH, WAITING, RUNNING, ENDED };

struct tdt__coroutine {
	struct tdt_stack stack;
	struct tdt__context inside, outside;
	struct tdt__san san, poller;
	struct tdt_fiber *fiber; /* says where the stack waits; NULL: no memory for it */
	bool covered; /* a coroutine that this one polled waits further in, and is shown instead */
	tdt_coroutine_fn *fn;
	void *arg;
	void *mapping;
	size_t mapping_size;
	struct tdt_context *cx; /* of the current poll; NULL: the coroutine is being dropped */
	enum state state;
	bool awaiting; /* it polls the future that it awaits, or waits for it */
	int result;    /* what `fn` returned, once it has ended */
};

/* --- On the poller's stack --------------------------------------------------- */

/* The stack belongs to the innermost traced poll, if any, and does not stand still from here on. */
static inline void note_runs(struct tdt__coroutine *co)
{
	const struct tdt__poll *poll = tdt__thread.poll;
	struct tdt_handle *task = poll != NULL ? poll->task : NULL;

	co->covered = false;
	if (co->fiber == NULL)
		return;
	if (__builtin_expect(co->fiber->task != task, 0))
		tdt__fiber_belongs(co->fiber, task);
	if (task != NULL)
		tdt__fiber_begin_write(co->fiber);
}

/*
 * Have requesters without an answer, and core files, find where the coroutine waits.  If it polled
 * another one that waits, that one has been noted, and says more.
 */
static inline void note_waiting(struct tdt__coroutine *co, struct tdt__coroutine *outer)
{
	if (co->state != WAITING)
		return;
	if (co->fiber != NULL && co->fiber->task != NULL && !co->covered)
		tdt__fiber_stands(co->fiber, tdt__context_registers(&co->inside));
	if (outer != NULL)
		outer->covered = true;
}

/*
 * Resume the coroutine until it waits or ends.  Cancellation is disabled meanwhile: a thread that
 * is cancelled would unwind the coroutine's stack, and leap from its end over all the callers of
 * this function.
 */
static __attribute__((noinline)) void tdt__coroutine_resume(struct tdt__coroutine *co,
							    struct tdt_context *cx)
{
	struct tdt__coroutine *outer = tdt__thread.coroutine;
	int cancelling;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancelling);
	note_runs(co);
	co->cx = cx;
	co->state = RUNNING;
	tdt__thread.coroutine = co;
	tdt_stack_enter(&co->stack);
	tdt__san_enter(&co->poller, &co->san);
	tdt__context_switch(&co->outside, &co->inside);
	tdt__san_left(&co->poller);
	tdt_stack_leave(&co->stack);
	note_waiting(co, outer);
	tdt__thread_here()->coroutine = outer; /* the switch may have changed the thread */
	pthread_setcancelstate(cancelling, NULL);
}

static tdt_poll_t tdt__coroutine_poll(void *state, struct tdt_context *cx)
{
	struct tdt__coroutine *co = state;

	if (co->state == ENDED || co->state == RUNNING)
		return TDT_PANICKED;
	tdt__coroutine_resume(co, cx);
	TDT_KEEP_FRAME();
	if (co->state != ENDED)
		return TDT_PENDING;
	return co->result == 0 ? TDT_READY : TDT_PANICKED;
}

static void tdt__coroutine_drop(void *state)
{
	struct tdt__coroutine *co = state;

	if (co->state == WAITING)
		tdt__coroutine_resume(co, NULL);
	tdt_fiber_end(co->fiber);
	tdt__san_fini(&co->san);
	munmap(co->mapping, co->mapping_size);
}

/* --- On the coroutine's stack -------------------------------------------------- */

/* The coroutine on whose stack the caller runs; NULL: the caller runs on another stack. */
static __attribute__((noinline)) struct tdt__coroutine *running(void)
{
	struct tdt__coroutine *co = tdt__thread.coroutine;

	return co != NULL && tdt__thread.entered == &co->stack ? co : NULL;
}

/* Go back to the poller; return in the next poll. */
static void leave_coroutine(struct tdt__coroutine *co, enum state state)
{
	co->state = state;
	tdt__san_leave(&co->poller, &co->san, state == ENDED);
	tdt__context_switch(&co->inside, &co->outside);
	tdt__san_entered(&co->poller, &co->san);
}

/* The outermost function on a coroutine's stack. */
static void tdt__coroutine_main(void)
{
	struct tdt__coroutine *co = running();

	tdt__san_entered(&co->poller, &co->san);
	co->stack.base = TDT__OWN_TOP();
	tdt_fiber_base(co->fiber, co->stack.base);
	co->result = co->fn(co->arg);
	leave_coroutine(co, ENDED);
	__builtin_unreachable();
}

static __attribute__((noinline)) int set_errno(int error)
{
	return tdt__result(error);
}

static __attribute__((noinline)) int tdt__coroutine_await(struct tdt__coroutine *co,
							  struct tdt_future *future)
{
	tdt_poll_t result = TDT_PENDING;

	co->awaiting = true;
	while (co->cx != NULL) {
		result = tdt_future_poll(future, co->cx);
		if (result != TDT_PENDING)
			break;
		leave_coroutine(co, WAITING);
	}
	co->awaiting = false;
	return result == TDT_READY ? 0 : result == TDT_PENDING ? -ECANCELED : -ENOTRECOVERABLE;
}

int tdt_co_await(struct tdt_future future)
{
	struct tdt__coroutine *co = running();
	int error;

	if (future.poll == NULL || future.drop == NULL)
		return set_errno(-EINVAL);
	error = co == NULL || co->awaiting ? -EDEADLK : tdt__coroutine_await(co, &future);
	tdt_future_drop(&future);
	return set_errno(error);
}

/* --- Making a coroutine ---------------------------------------------------------- */

/*
 * How many bytes to map for a stack of `stack` bytes, with the record and the guard area, rounded
 * up to whole pages.  0: too many.
 */
static size_t size_of_mapping(size_t stack, size_t page)
{
	size_t size;

	if (__builtin_add_overflow(stack, sizeof(struct tdt__coroutine) + GUARD + page - 1, &size))
		return 0;
	return size & ~(page - 1);
}

/* Make a mapping.  Returns the record in it; NULL and errno. */
static struct tdt__coroutine *map(size_t stack)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = size_of_mapping(stack, page);
	struct tdt__coroutine *co;
	char *mapping;

	if (size == 0)
		return tdt__nothing(-ENOMEM);
	mapping = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (mapping == MAP_FAILED)
		goto failed;
	if (mprotect(mapping, GUARD, PROT_NONE) != 0)
		goto unmap;
	co = (struct tdt__coroutine *)(void *)(mapping + ((size - sizeof(*co)) & ~(size_t)63));
	co->mapping = mapping;
	co->mapping_size = size;
	co->stack.low = mapping + GUARD;
	co->stack.size = (size_t)((char *)co - (mapping + GUARD));
	return co;

unmap:
	munmap(mapping, size);
failed:
	return tdt__nothing(-ENOMEM);
}

struct tdt_future tdt_coroutine(tdt_coroutine_fn *fn, void *arg,
				const struct tdt_coroutine_attr *attr)
{
	struct tdt_coroutine_attr ours;
	struct tdt__coroutine *co;
	int error = tdt__options_read(&ours, sizeof(ours), attr);

	if (error == 0 &&
	    (fn == NULL || (ours.stack_size != 0 && ours.stack_size < TDT_COROUTINE_MIN_STACK)))
		error = -EINVAL;
	if (error != 0)
		return tdt__no_future(error);
	co = map(ours.stack_size != 0 ? ours.stack_size : TDT_COROUTINE_STACK);
	if (co == NULL)
		return TDT_FUTURE_NONE;
	co->fn = fn;
	co->arg = arg;
	co->state = FRESH;
	co->fiber = tdt__fiber_new(co->stack.low, co->stack.size);
	tdt__san_init(&co->san, co->stack.low, co->stack.size);
	tdt__context_make(&co->inside, co->stack.low, co->stack.size, tdt__coroutine_main);
	return (struct tdt_future){ co, tdt__coroutine_poll, tdt__coroutine_drop };
}

/* --- Stacks of others ------------------------------------------------------ */

/* The frames outside the stack are those of the caller, which waits in its switch to the stack. */
__attribute__((noinline)) void tdt_stack_enter(struct tdt_stack *stack)
{
	struct tdt__registers caller = TDT__CALLER_REGISTERS();

	if (stack == NULL)
		return;
	tdt__interrupt_heed(stack->size);
	stack->outer = tdt__thread.entered;
	stack->level = stack->outer != NULL ? stack->outer->level + 1 : 1;
	stack->entry = ++tdt__thread.entries;
	stack->pc = caller.pc;
	stack->sp = caller.sp;
	stack->fp = caller.fp;
	/* A signal handler may poll: the stack that it finds entered must be complete. */
	atomic_signal_fence(memory_order_release);
	tdt__thread.entered = stack;
}

void tdt_stack_leave(struct tdt_stack *stack)
{
	if (stack != NULL)
		tdt__thread_here()->entered = stack->outer;
}

TDT__NAME_IN_TREES(coroutine_await);
TDT__NAME_IN_TREES(coroutine_main);
TDT__NAME_IN_TREES(coroutine_poll);
TDT__NAME_IN_TREES(coroutine_resume);
