/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_PANICS_H
#define TDT_PANICS_H

/*
 * Tasks that panicked: whose poll returned TDT_PANICKED, or left by unwinding.  Such a task is gone
 * soon after, so the library keeps what is known of the last 16: id, name, spawn place, when it
 * panicked, and a tree, if a poll of the task was captured.  A dump shows them, too (tdt/dump.h),
 * and readers outside the process find them in the registry (tdt/layout/registry.h).  How many
 * there were is in struct tdt_counts (tdt/counters.h).
 */

#include <tdt/tree.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/*
 * Called by tdt_panics() for each task.  The state in tdt_trace_info(trace) is TDT_TASK_PANICKED,
 * and `state_ns` is the time since the panic.  The tree has the leaves of the last poll, if that
 * poll was captured.  Otherwise it is the last watched tree (tdt/watch.h), with its age and with
 * `polls_since`; or it has no leaves.  The trace is borrowed: it is freed after the call.  A result
 * other than 0 ends the visit.
 */
typedef int tdt_panic_fn(const struct tdt_trace *trace, void *arg);

/*
 * Call `each` for the last tasks that panicked, at most 16, the last one first:
 *
 *	static int print(const struct tdt_trace *trace, void *out)
 *	{
 *		return tdt_trace_print(trace, out);
 *	}
 *	...
 *	tdt_panics(print, stderr);
 *
 * Returns 0, or the result of `each` that ended the visit.  On an error returns a negative errno
 * and sets errno: -EINVAL (`each` is NULL), -ENOMEM.  Any thread, but not in a signal handler.  The
 * library holds no lock during the calls of `each`.
 */
int tdt_panics(tdt_panic_fn *each, void *arg);

/*
 * Called when a task has panicked, on the thread that polled it, before that poll returns to the
 * runtime.  `task` is borrowed.  The hook must return soon, since the worker waits for it, and must
 * not unwind.  It may call tdt_panics(); the task is among these.
 */
typedef void tdt_panic_hook_fn(const struct tdt_trace_info *task);

/*
 * Have `hook` called for each task that panics, for example to log it; NULL: no hook any more.
 * There is one hook; a new one replaces the old one, which may still be running on other threads.
 * Any thread.
 *
 *	static void log_panic(const struct tdt_trace_info *task)
 *	{
 *		syslog(LOG_ERR, "task %" PRIu64 " \"%s\" panicked", task->id,
 *		       task->name != NULL ? task->name : "");
 *	}
 *	...
 *	tdt_on_panic(log_panic);
 */
void tdt_on_panic(tdt_panic_hook_fn *hook);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
