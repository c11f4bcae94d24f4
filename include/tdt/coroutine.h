/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_COROUTINE_H
#define TDT_COROUTINE_H /* stable from 1.0: docs/compatibility.md */

/*
 * Stackful coroutines: functions in plain C that wait in the middle, at any depth of calls.  To all
 * other code, a coroutine is a future.  Each coroutine has a stack of its own, so its variables are
 * plain variables.
 *
 *	static int fetch(void *arg)                     // an ordinary function
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
 *	task = tdt_rt_spawn(rt, tdt_coroutine(fetch, &job, NULL), TDT_TASK_ATTR(.name = "fetch"));
 *
 * While a coroutine waits it uses no thread; it occupies only the pages of its stack that it has
 * touched.  Each poll of it switches to its stack, polls there the future that the coroutine
 * awaits, and switches back.  In a backtrace, the coroutine's frames stand between the frames of
 * the awaited future and the frames of the code that polls the coroutine, as if all of them were on
 * one stack.
 *
 * If no poll answers a request, because all workers are blocked, the trace of the innermost traced
 * task around a coroutine shows where the coroutine itself waits: the frames on its stack, without
 * those of the awaited future.  A core file shows the same (tdt/layout/registry.h, "Fibers").  Of
 * several coroutines in one task, the one that was left last is shown; of a coroutine that awaits
 * another one, the inner one.
 *
 * Rules for code that runs in a coroutine:
 *
 *   - After an await, the coroutine may run on another thread than before, because successive polls
 *     may come from different threads.  Objects that belong to a thread do not move with it.  Do
 *     not hold a mutex of pthreads across an await.  Do not use a thread-local variable (`errno`
 *     included) both before and after an await in one function, because the compiler may keep the
 *     variable's address in a register across the await.  Best use none in a function that awaits.
 *     Access thread-local variables in other functions that the compiler does not look into from
 *     there: functions in another file, or functions with gcc's attribute noipa (noinline is not
 *     enough).
 *   - tdt_co_await() returns an error when the coroutine is to end.  Then release everything that
 *     the coroutine holds, and return.
 *   - No C++ exception may leave the coroutine (an exception that does ends the process, by
 *     std::terminate()), nor a longjmp, and the coroutine does not call pthread_exit().  A
 *     cancellation of the thread (pthread_cancel()) is delayed until the poll is over.
 *   - The size of the stack is fixed when the coroutine is made.  Deep recursion and arrays of many
 *     KiB need a larger stack than the default.  Below the stack lie 256 KiB that cannot be
 *     accessed, so an overflow is a SIGSEGV.  (A handler for it needs a stack of its own:
 *     sigaltstack(2), SA_ONSTACK.)  However, a function with a frame of more than 256 KiB may jump
 *     over that area, unless it is compiled with -fstack-clash-protection.
 *   - Printing a trace in a coroutine needs a stack of 1 MiB, because libdw has large frames.
 *   - Signals that arrive while the coroutine runs are handled on its stack, unless their handlers
 *     are installed with SA_ONSTACK.
 *
 * Coroutines of other libraries report their stacks (tdt/integrate/stack.h, man 7 tdt-coroutines).
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/decls.h>
#include <tdt/future.h>

TDT_DECLS_BEGIN

/*
 * Options for tdt_coroutine().  `size` is sizeof(struct tdt_coroutine_attr), with the rules of
 * struct tdt_task_attr.
 */
struct tdt_coroutine_attr {
	size_t size;
	size_t stack_size; /* in bytes, at least TDT_COROUTINE_MIN_STACK; 0: TDT_COROUTINE_STACK */
};

#define TDT_COROUTINE_STACK ((size_t)64 << 10)
#define TDT_COROUTINE_MIN_STACK ((size_t)16 << 10)

/*
 * The function of a coroutine.  If it returns 0, the coroutine's future is ready; if it returns any
 * other value, the future has panicked.
 */
typedef int tdt_coroutine_fn(void *arg);

/*
 * Make a future that calls `fn` with `arg` on a stack of its own.  The first poll of the future
 * begins the call, and the future ends when `fn` returns: it is ready if `fn` returned 0, and has
 * panicked otherwise.  `attr` may be NULL: that means the defaults.  `arg` must stay valid until
 * the future has ended or has been dropped.
 *
 * The stack is mapped by this call.  It takes memory only as it is touched: one page, if the
 * functions on it need little.  A stack is two mappings, and a process may have about 65,000
 * mappings (/proc/sys/vm/max_map_count).
 *
 * If the future is dropped while it waits, the awaited future is dropped, and `fn` continues a last
 * time, on the thread that drops the coroutine, so that it can end.  Its await returns -ECANCELED,
 * and so does every later await, at once.  The drop returns when `fn` has returned.  If the future
 * is dropped before its first poll, `fn` is never called.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`fn` is NULL, attr->size is 0, or the stack is
 * smaller than TDT_COROUTINE_MIN_STACK), E2BIG (`attr` is of a newer library), ENOMEM (there is no
 * memory for the stack, or there are too many mappings).  Any thread.
 */
TDT_MUST_USE
struct tdt_future tdt_coroutine(tdt_coroutine_fn *fn, void *arg,
				const struct tdt_coroutine_attr *attr);

/*
 * In a coroutine, wait until `future` has ended.  The future is polled on the coroutine's stack,
 * with the waker that the coroutine itself is polled with.  This may be called at any depth of
 * calls, but not inside the poll of a future that the coroutine awaits: such a poll cannot wait.
 *
 * The call takes `future` over, whatever it returns, and has dropped it when it returns.
 *
 * Returns 0 if the future was ready.  Otherwise it returns an error, and sets errno too:
 *   -ENOTRECOVERABLE  the future has panicked
 *   -ECANCELED        the coroutine is being dropped, and should return soon
 *   -EINVAL           `future` is TDT_FUTURE_NONE, or has no drop
 *   -EDEADLK          the caller is not in a coroutine of tdt_coroutine(), or is in a poll inside
 *                     such a coroutine; there is nothing that could wait
 */
int tdt_co_await(struct tdt_future future);

TDT_DECLS_END

#endif
