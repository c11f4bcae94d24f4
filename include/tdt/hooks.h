/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_HOOKS_H
#define TDT_HOOKS_H

/*
 * For the author of a runtime: what libtdt would like to be told.  All of it is optional: a traced future works on a
 * runtime that has never heard of tdt, and fires the probes task-spawn, task-poll-start, task-poll-end, task-terminate
 * and task-waker-clone.  The others fire from here (man 7 tdt-probes).
 *
 *	static void *worker(void *arg)
 *	{
 *		tdt_worker_thread_start();
 *		while (!stopping) {
 *			if (nothing_to_do()) {
 *				tdt_worker_thread_park();
 *				wait_for_something_to_do();
 *				tdt_worker_thread_unpark();
 *			}
 *			tdt_worker_now(monotonic_ns());
 *			poll_what_is_runnable();
 *		}
 *		tdt_worker_thread_stop();
 *		return NULL;
 *	}
 *
 * A function here costs a test of a flag or some stores, unless a tracer is attached to its probe; tdt_task_woken() reads
 * the coarse clock too, some 7 ns, on a thread that was not told the time.
 */

#include <tdt/trace.h>
#include <tdt/tree.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/*
 * Say that this thread polls tasks, or does so no more (the two don't nest).  On a worker tdt_backtrace() is refused
 * with EDEADLK: it would block the thread that may have to poll the task.  They fire the probes worker-thread-start and
 * worker-thread-stop.
 */
void tdt_worker_thread_start(void);
void tdt_worker_thread_stop(void);

/*
 * Say that this worker is about to wait for something to do, or has been woken: between the two it is idle.  They fire
 * the probes worker-thread-park and worker-thread-unpark, and do nothing else.
 */
void tdt_worker_thread_park(void);
void tdt_worker_thread_unpark(void);

/*
 * Say that the task of `handle` is being woken; for who owns the waker, since libtdt's wrapper passes the runtime's own
 * wakers on and sees no wake-up.  Say it before the task is made runnable, so that it comes before the poll that it
 * leads to, and once for the wake-ups that lead to one poll.  It fires the probe task-wake, and notes in the task's
 * record when it was, and which task was being polled on this thread: that woke it; unless it is woken only to answer a
 * backtrace.  (What wakes it after that and before its poll is the same wake-up to the runtime, and not told then.)
 * A dump relies on it when it calls a ring of tasks a deadlock: one that was woken may be about to go on.  NULL does
 * nothing.  Any thread.
 */
void tdt_task_woken(struct tdt_handle *handle);

/*
 * The runtime's own waker that `waker` stands for; `waker` itself if it is the runtime's own
 * already.  For the author of a runtime, or of a leaf that belongs to one, who looks into a waker
 * (compares its vtable, takes the task out of it).
 *
 * In a poll that somebody has asked for (tdt_backtrace(), dumps) a leaf borrows a waker of
 * libtdt's, and its clones are *counted clones*, also of libtdt: they forward to a clone of the
 * runtime's waker, and a leaf that holds none when the poll is over is known to wait no more.  A
 * leaf that takes the task out of its waker and then drops its clone looks like such a leaf: if it
 * waits beside others it is missing from the trace.  A program with a leaf like that turns counted
 * clones off: tdt_leaf_wakers(false).
 *
 * The answer is borrowed from `waker`: it is good as long as that is.  NULL: `waker` is NULL, or
 * was borrowed for a poll that is over.  Any thread; async-signal-safe.
 */
const struct tdt_waker *tdt_waker_beneath(const struct tdt_waker *waker);

/*
 * Say what the leaf that is being polled waits for; for the author of a leaf, who calls it in each poll that is about
 * to return TDT_PENDING, once, on the thread that polls.  It is kept for the innermost traced task, until that is polled
 * again, and shows in traces and dumps; a ring of tasks that wait for each other is named there, if every leaf of each
 * has said so.
 *
 * `object` tells one thing to wait for from another of its kind (its address; a descriptor, cast; for TDT_WAIT_TASK the
 * handle); `owner` is the id of the task it hangs on (that holds the mutex, that is awaited), 0 if none or unknown.
 * Some stores; outside of polls it does nothing.
 *
 * A mutex notes who takes it, and tells who has to wait:
 *
 *	static tdt_poll_t lock_poll(void *state, struct tdt_context *cx)
 *	{
 *		struct locking *locking = state;
 *		struct mutex *mutex = locking->mutex;
 *
 *		locking->task = tdt_current_task_id();          // 0 outside of tasks
 *		if (take(mutex)) {
 *			mutex->holder = locking->task;
 *			return TDT_READY;
 *		}
 *		wait_in_line(mutex, locking, cx->waker);
 *		tdt_leaf_waits_on(TDT_WAIT_MUTEX, mutex, mutex->holder);
 *		return TDT_PENDING;
 *	}
 *
 * A mutex that is handed over to the first in the line sets `holder` to that one's `task`; one that nobody holds, to 0.
 * Those who stay in the line tell the new holder when they are polled next: a backtrace has them polled.
 *
 * A leaf that only lets others go first waits for nothing, and says nothing; nor does a future that polls others, which
 * speak for themselves.
 */
void tdt_leaf_waits_on(enum tdt_wait_kind kind, const void *object, uint64_t owner);

/*
 * Say what time it is: CLOCK_MONOTONIC in nanoseconds.  One call a turn of the worker's loop serves all polls of that
 * turn on this thread, which stamp their tasks with it; a runtime that knows the time anyway pays nothing.  Where it is
 * never called (or was last called with 0), each poll reads the coarse clock, some 7 ns.  A thread that stops telling
 * the time says so with 0, or its tasks' stamps stand still.
 */
void tdt_worker_now(uint64_t monotonic_ns);

/*
 * Move the ids that tdt picks to `first` and above, for a runtime that has task ids of its own and gives one to every
 * task.  Tasks that have an id keep it.  Returns 0, or -EINVAL: `first` is 0 or below an id already picked.  Any
 * thread.
 */
int tdt_task_id_base(uint64_t first);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
