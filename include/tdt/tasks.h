/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TASKS_H
#define TDT_TASKS_H /* stable from 1.0: docs/compatibility.md */

/*
 * All live traced tasks, and the *record* of each: the facts that are known of a task without a
 * request to it.  Reading a record costs the task and its runtime nothing.
 *
 *	static int show(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg)
 *	{
 *		printf("task %" PRIu64 " waits for %.1f s\n", info->id, info->state_ns / 1e9);
 *		return 0;
 *	}
 *	...
 *	struct tdt_task_filter filter = { .size = sizeof filter, .name = "connection *",
 *					  .longer_than_ns = 5000000000 };
 *	tdt_tasks(&filter, show, NULL);
 *
 * The calls in tdt/dump.h make requests to all tasks, and report where each of them waits.
 */

#include <tdt/decls.h>
#include <tdt/tree.h>

TDT_DECLS_BEGIN

/*
 * A filter of tasks.  All zero but `size` means all tasks.  `size` is as in struct tdt_task_attr.
 */
struct tdt_task_filter {
	size_t size;
	const char *name;        /* the task's name matches this pattern of fnmatch(3) (no flags);
				    NULL: any name, or none */
	uint64_t longer_than_ns; /* the task has been in its state for at least so long */
	uint32_t states;         /* bits 1 << TDT_TASK_WAITING (which also selects runnable tasks),
				    1 << TDT_TASK_RUNNABLE and 1 << TDT_TASK_RUNNING; 0: all */
	uint32_t reserved;       /* 0 */
};

/*
 * A function that is called with each task, on the thread that iterates.  `handle` is borrowed for
 * the call; keep it with tdt_handle_ref().  `info` and its strings are valid during the call only.
 * `info` has no leaves.  Its `waits` has at most one element: the wait of the first leaf in the
 * last poll that reported one.  A fiber, or a task of tdt_task_new(), that has no name but `entry`
 * has the name of that function: it is looked up once, for which the call waits for 0.1 s at most.
 * A name that comes later is there the next time.
 *
 * The function returns 0 to continue the iteration.  Any other value ends the iteration, which then
 * returns this value.
 */
typedef int tdt_task_fn(struct tdt_handle *handle, const struct tdt_task_info *info, void *arg);

/*
 * Call `each` for every live task that `filter` (may be NULL) selects.  A task that lives during
 * the whole iteration is visited once.  A task that begins or ends meanwhile may be visited or not.
 * The facts in `info` were all true of the task at one moment, except that times and counts may be
 * one poll apart.  No lock is held while `each` runs: it may spawn tasks, make requests, and
 * iterate.
 *
 * Returns 0, or the value that `each` returned, or -EINVAL (`each` is NULL, or the filter has no
 * size or selects unknown states), or -E2BIG.  Sets errno in the last two cases only.  Any thread.
 * Not async-signal-safe.
 */
int tdt_tasks(const struct tdt_task_filter *filter, tdt_task_fn *each, void *arg);

/*
 * Call `each` with the record of one task.  The task may have ended: then its state is
 * TDT_TASK_READY or TDT_TASK_PANICKED, and a task that was dropped counts as panicked.  Returns the
 * value that `each` returned, or -EINVAL and sets errno if a pointer is NULL.  Any thread.
 */
int tdt_task_inspect(struct tdt_handle *handle, tdt_task_fn *each, void *arg);

/*
 * Find the live task with this id.  Returns a handle, which the caller unrefs (tdt_handle_unref()).
 * Returns NULL and sets errno to ESRCH if there is no such task.  If several tasks were given the
 * same id, the call returns any of them.  It looks at every record, which takes 10 to 20 ns for
 * each.  Any thread.
 */
TDT_MUST_USE
struct tdt_handle *tdt_task_find(uint64_t id);

TDT_DECLS_END

#endif
