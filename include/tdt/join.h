/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_JOIN_H
#define TDT_JOIN_H /* stable from 1.0: docs/compatibility.md */

/*
 * Await the end of another task, given its handle, or bring it about.  The task may be any traced
 * future, on any runtime.
 */

#include <tdt/decls.h>
#include <tdt/future.h>
#include <tdt/trace.h>

TDT_DECLS_BEGIN

/*
 * Make a future that is ready when the task of `handle` has ended.  If the task has ended already,
 * the future is ready at its first poll.
 *
 * `*outcome` then reports how the task ended: 0 if it was ready, -ENOTRECOVERABLE if it panicked,
 * -ECANCELED if it was dropped before it was either.  `outcome` may be NULL.  Otherwise it must
 * outlive the future; only the future's poll writes `*outcome`.
 *
 * When the future is ready, the task's own future has been polled for the last time, but may not
 * have been dropped yet.  The awaiting task can read all that the ended task wrote before its end.
 *
 * The call takes a reference of its own.  `handle` still belongs to the caller, who may unref it at
 * any time.  Dropping the future stops the waiting, and has no effect on the task.  A task that
 * awaits itself waits for ever.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`handle` is NULL), ENOMEM.  Any thread.
 */
TDT_MUST_USE
struct tdt_future tdt_join(struct tdt_handle *handle, int *outcome);

/*
 * Abort the task of `handle`: have its future dropped in place of its next poll.  A task that waits
 * is woken for that, so it is dropped as soon as its runtime has a thread for it.  If the task is
 * being polled, that poll goes on; if it ends the task, the abort comes too late.
 *
 * What the task waits for is released by the drops of its leaves.  What it owns besides is released
 * by the drop of its own future, such as the `fini` of a frame (tdt/async.h), on the thread that
 * would have polled it.  tdt_current_task_id() is the task's id there.
 *
 *	static void fini(void *state)
 *	{
 *		struct request *request = state;
 *
 *		if (request->locked)                    // dropped between lock and unlock
 *			tdt_mutex_unlock(request->mutex);
 *		tdt_tcp_free(request->tcp);
 *	}
 *
 * Joiners get -ECANCELED, after the drop.  Dumps and the recorder report the task that made the
 * call: "aborted by task 7".  To its runtime, or the future that polls it, the task has panicked:
 * its poll returns TDT_PANICKED, with errno ECANCELED.
 *
 * The call does not wait for the end: tdt_join() does.  Aborting a task twice is aborting it once.
 * Returns 0, or a negative errno and sets errno: -ESRCH (the task has ended), -EINVAL (`handle` is
 * NULL, or the task has no future: a fiber, or a task of tdt_task_new()), -EOPNOTSUPP (the future
 * has no `drop`, so that only its owner can drop it: a future of the Rust crate, whose runtime can
 * abort it).  Any thread, also in a poll of the task itself.
 */
int tdt_task_abort(struct tdt_handle *handle);

TDT_DECLS_END

#endif
