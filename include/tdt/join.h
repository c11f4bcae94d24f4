/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_JOIN_H
#define TDT_JOIN_H /* stable from 1.0: docs/compatibility.md */

/*
 * Await the end of another task, given its handle.  The task may be any traced future, on any
 * runtime.
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

TDT_DECLS_END

#endif
