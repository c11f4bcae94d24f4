/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_PANICS_H
#define TDT_PANICS_H /* stable from 1.0: docs/compatibility.md */

/*
 * Tasks that panicked: whose poll returned TDT_PANICKED, or left by unwinding.  Such a task is gone
 * soon after, so the library keeps what is known of the last 16: id, name, spawn place, when it
 * panicked, and a tree, if a poll of the task was captured.  A dump shows them, too (tdt/dump.h),
 * and readers outside the process find them in the registry (tdt/layout/registry.h).  How many
 * there were is in struct tdt_counts (tdt/counters.h).
 */

#include <tdt/decls.h>
#include <tdt/tree.h>

TDT_DECLS_BEGIN

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
 * runtime.  `task` is borrowed, and `arg` is that of tdt_panic_hook_add().  The hook must return
 * soon, since the worker waits for it, and must not unwind.  It may call tdt_panics(); the task is
 * among these.
 */
typedef void tdt_panic_hook_fn(const struct tdt_task_info *task, void *arg);

/*
 * Have `hook` called for each task that panics, for example to log it.  There may be several hooks,
 * which are called in the order in which they were added.
 *
 *	static void log_panic(const struct tdt_task_info *task, void *arg)
 *	{
 *		syslog(LOG_ERR, "task %" PRIu64 " \"%s\" panicked", task->id,
 *		       task->name != NULL ? task->name : "");
 *	}
 *	...
 *	tdt_panic_hook_add(log_panic, NULL);
 *
 * Returns 0, or a negative errno and sets errno: -EINVAL (`hook` is NULL), -EEXIST (it was added
 * with the same `arg`), -ENOMEM.  Any thread.
 */
int tdt_panic_hook_add(tdt_panic_hook_fn *hook, void *arg);

/*
 * Have `hook` with this `arg` called no more.  When the call returns, no thread is in it, so that
 * `arg` can be freed and the hook's module unloaded.  Returns 0, or a negative errno and sets
 * errno: -ENOENT (it was not added), -EDEADLK (the caller is in it; nothing has changed).  Any
 * thread.
 */
int tdt_panic_hook_remove(tdt_panic_hook_fn *hook, void *arg);

TDT_DECLS_END

#endif
