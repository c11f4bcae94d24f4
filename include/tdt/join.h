/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_JOIN_H
#define TDT_JOIN_H

/* Await the end of another task, by its handle: of any traced future, on any runtime. */

#include <tdt/future.h>
#include <tdt/trace.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/*
 * Ready when the task has ended; at once if it has already.  `*outcome` (may be NULL; it must outlive the future, and
 * is written only from its poll) says how: 0 ready, -ENOTRECOVERABLE panicked, -ECANCELED dropped before either.  The
 * task's future has been polled for the last time then, but may not have been dropped yet.  What the task wrote before
 * its end can be read.
 *
 * Takes a reference of its own: `handle` stays the caller's, who may give it back meanwhile.  Dropping the future stops
 * waiting, and does nothing to the task.  A task that awaits itself waits for ever.
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (`handle` is NULL), ENOMEM.  Any thread.
 */
struct tdt_future tdt_join(struct tdt_handle *handle, int *outcome);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
