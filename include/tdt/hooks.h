/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_HOOKS_H
#define TDT_HOOKS_H

/*
 * For the author of a runtime: what libtdt would like to be told.  All of it is optional: a traced future works on a
 * runtime that has never heard of tdt.
 */

#include <tdt/future.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/*
 * Say that this thread polls tasks, or does so no more (the two don't nest).  On a worker tdt_backtrace() is refused
 * with EDEADLK: it would block the thread that may have to poll the task.
 */
void tdt_worker_thread_start(void);
void tdt_worker_thread_stop(void);

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
