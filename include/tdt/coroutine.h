/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_COROUTINE_H
#define TDT_COROUTINE_H

/*
 * Stackful coroutines: functions in plain C that wait in the middle, at any depth of calls, and are futures to all
 * others.  Each has a stack of its own, so its variables are plain variables.
 *
 *	static int fetch(void *arg)                     // any function
 *	{
 *		struct fetch *fetch = arg;
 *		int err = tdt_co_await(dial(fetch->host, &fetch->fd));
 *
 *		if (err != 0)
 *			return err;
 *		while (err == 0 && !complete(fetch))
 *			err = tdt_co_await(read_some(fetch->fd, fetch->reply));
 *		close(fetch->fd);
 *		return err;
 *	}
 *	...
 *	tdt_rt_spawn(rt, tdt_coroutine(fetch, &job, NULL), TDT_TASK_ATTR(.name = "fetch"));
 *
 * While it waits it is memory and nothing else: the pages of its stack that it has touched; no thread.  Each poll of it
 * goes over to its stack, polls there what it awaits, and comes back.  Its frames are in backtraces, between those of
 * what it awaits and those of who polls it, as if all were one stack.
 *
 * Rules for what runs in a coroutine:
 *
 *   - Successive polls may come from different threads, so it may go on after an await on another thread than before.
 *     What belongs to a thread does not go with it: a mutex of pthreads is not held across an await.  A compiler may
 *     keep the address of a thread-local variable in a register across the call: a function that awaits should use
 *     none, `errno` included, both before and after; get at them in functions that the compiler does not look into from
 *     there (of another file, or with gcc's attribute noipa; noinline is not enough).
 *   - Await returns an error when the coroutine is to end (see tdt_co_await()): release what is held, and return.
 *   - No C++ exception leaves it (that ends the process, by std::terminate()), nor a longjmp; and it does not call
 *     pthread_exit().  A cancellation of the thread (pthread_cancel()) is held back until the poll is over.
 *   - Its stack is as large as it was made: deep recursion, and arrays of many KiB, want a larger one.  An overflow hits
 *     256 KiB that can't be touched, and so is a SIGSEGV (whose handler, if there is one, needs a stack of its own:
 *     sigaltstack(2), SA_ONSTACK); but a function with a larger frame, that is not compiled with
 *     -fstack-clash-protection, may jump over them.  To print a trace wants 1 MiB: libdw has large frames.  Signals that
 *     come meanwhile are handled on the coroutine's stack, unless they are SA_ONSTACK.
 *
 * The latter part of this header is for coroutines of other libraries: man 7 tdt-coroutines.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/future.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Choices for tdt_coroutine().  `size` is sizeof(struct tdt_coroutine_attr), by the rules of struct tdt_task_attr. */
struct tdt_coroutine_attr {
	size_t size;
	size_t stack_size; /* in bytes, TDT_COROUTINE_MIN_STACK at least; 0: TDT_COROUTINE_STACK */
};

#define TDT_COROUTINE_STACK ((size_t)64 << 10)
#define TDT_COROUTINE_MIN_STACK ((size_t)16 << 10)

/* What a coroutine runs.  Returns 0, and its future is ready; or anything else, and its future has panicked. */
typedef int tdt_coroutine_fn(void *arg);

/*
 * A future that calls `fn` with `arg` on a stack of its own, from its first poll on, and ends when `fn` returns: ready
 * if that returned 0, else panicked.  `attr` may be NULL: the defaults.  `arg` outlives the future, or its end.
 *
 * The stack is mapped now, and takes memory as it is touched: a page, if what runs there is small.  A stack is two
 * mappings, and a process may have some 65,000 of those (/proc/sys/vm/max_map_count).
 *
 * If the future is dropped while it waits, what it awaits is dropped, and the function goes on once more, on the
 * thread that drops it, to end: its await returns -ECANCELED, and so does every other from then on, at once.  The drop
 * returns when the function has.  One that was never polled never runs.
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (`fn` is NULL, attr->size is 0, the stack is smaller than the least),
 * E2BIG (`attr` is of a newer library), ENOMEM (no memory for the stack, or too many mappings).  Any thread.
 */
struct tdt_future tdt_coroutine(tdt_coroutine_fn *fn, void *arg, const struct tdt_coroutine_attr *attr);

/*
 * In a coroutine: wait until `future` has ended.  It is polled on the coroutine's stack, with the waker that the
 * coroutine itself is polled with.  At any depth of calls, but not in a poll: a future that is awaited can't await.
 *
 * Takes `future` over, whatever it returns: it has been dropped then.
 *
 * Returns 0 when it was ready.  Or, and errno is set too: -ENOTRECOVERABLE, it has panicked; -ECANCELED, the coroutine
 * is being dropped, and does well to return soon; -EINVAL, `future` is none or has no drop; -EDEADLK, this is no
 * coroutine of tdt_coroutine(), or a poll in one, where nobody could wait.
 */
int tdt_co_await(struct tdt_future future);

/*
 * --- Coroutines of other libraries -----------------------------------------
 *
 * A backtrace goes down one stack.  Whoever switches to another one himself, to poll there, tells of it; then the
 * backtrace goes on from the end of that stack where the switch was made.  If nobody tells, a
 * leaf on that stack is cut at its end, and a poll that goes on there is not read from outside:
 *
 *	static void entry(struct their_coroutine *co)           // the outermost function on the coroutine's stack
 *	{
 *		TDT_STACK_BASE(&co->stack);
 *		co->function(co->arg);
 *		TDT_KEEP_FRAME();
 *	}
 *	...
 *	co->stack = (struct tdt_stack){ .low = memory, .size = size };
 *	...
 *	tdt_stack_enter(&co->stack);
 *	their_resume(co);
 *	tdt_stack_leave(&co->stack);
 *
 * The two calls cost some stores each.
 */

/* A stack to be told of, in its owner's storage.  All zero but `low` and `size`, to begin with. */
struct tdt_stack {
	void *low;      /* its lowest byte that can be read */
	size_t size;    /* up to its end */
	uintptr_t base; /* TDT_STACK_BASE(); 0: not told */

	/* The library's, while it is entered. */
	struct tdt_stack *outer;
	uintptr_t pc, sp, fp;
	uint64_t entry;
	uint32_t level;
};

/*
 * Say that this function is the outermost on `stack`: a backtrace goes from here to where the stack was entered.  Said
 * once, by the function itself, which is still there while the coroutine runs (it does not end in a tail call).  Where
 * nobody says so, backtraces are cut at the stack's end.
 */
#if defined(__x86_64__)
#define TDT_STACK_BASE(stack) ((void)((stack)->base = (uintptr_t)__builtin_dwarf_cfa()))
#else
#define TDT_STACK_BASE(stack) ((void)((stack)->base = (uintptr_t)__builtin_frame_address(0)))
#endif

/*
 * Say that this thread is about to go over to `stack`, and that it has come back.  Both are called
 * by one function on the stack it comes from, right before and right behind the switch.  They nest:
 * who is on one stack may enter another, and leaves it first.  Between the two `stack` stays as and
 * where it is.
 *
 * A coroutine is not switched away from in the middle of a poll of a traced future that began on
 * its stack: what it awaits is polled, and it is switched away from when that poll has returned
 * TDT_PENDING.  If it is all the same, and goes on later on the same thread, no harm is done: the
 * polls of a thread may end in any order, and a poll is read from outside only while its thread is
 * on the poll's own stack.  But tdt_current_task_id(), tdt_leaf_waits_on() and the tasks' parents
 * and wakers are then those of the poll that began last on the thread and has not ended.  It is
 * undefined what happens if such a coroutine goes on on another thread, or is destroyed, before its
 * poll has ended: the thread where the poll began has it among its polls for ever.
 *
 * NULL does nothing.  Owner thread only: whoever resumes it, one at a time.
 */
void tdt_stack_enter(struct tdt_stack *stack);
void tdt_stack_leave(struct tdt_stack *stack);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
