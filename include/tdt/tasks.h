/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TASKS_H
#define TDT_TASKS_H

/*
 * All traced tasks that live, and what is known of each without asking it: its *record*.  To read one costs no task and
 * no runtime anything.
 *
 *	static int show(struct tdt_handle *handle, const struct tdt_trace_info *info, void *arg)
 *	{
 *		printf("task %" PRIu64 " waits for %.1f s\n", info->id, (double)info->state_ns / 1e9);
 *		return 0;
 *	}
 *	...
 *	struct tdt_task_filter filter = { .size = sizeof filter, .name = "connection *", .longer_than_ns = 5000000000 };
 *	tdt_tasks(&filter, show, NULL);
 *
 * tdt/dump.h asks them all where they wait.
 */

#include <tdt/tree.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Which tasks; all zero (but `size`): all.  `size` as in struct tdt_task_attr. */
struct tdt_task_filter {
	size_t size;
	const char *name;        /* a pattern of fnmatch(3), with no flags; NULL: any, and none */
	uint64_t longer_than_ns; /* in their state for at least so long */
	uint32_t states;         /* of 1 << TDT_TASK_WAITING and 1 << TDT_TASK_RUNNING; 0: both */
	uint32_t reserved;       /* 0 */
};

/*
 * What is called with each task.  `handle` is lent for the call: tdt_handle_ref() it to keep it.  `info` has no leaves;
 * its `waits` are of the first leaf that told, if one did, in the last poll; it and its strings are the call's too.
 * Returns 0 to go on; anything else ends the iteration, which returns it.
 */
typedef int tdt_task_fn(struct tdt_handle *handle, const struct tdt_trace_info *info, void *arg);

/*
 * Call `each` for every live task that `filter` (may be NULL) lets through.  A task that lives all the time is met
 * once; one that comes or goes meanwhile may be met or not.  What is said of a task was all true of that task at one
 * moment, but for times and counts that may be one poll apart.  No lock is held while `each` runs: it may spawn, ask,
 * and iterate.
 *
 * Returns 0, what `each` returned, or -EINVAL (`each` is NULL, the filter has no size or asks for unknown states) or
 * -E2BIG.  Sets errno in the last two cases alone.  Any thread.  Not async-signal-safe.
 */
int tdt_tasks(const struct tdt_task_filter *filter, tdt_task_fn *each, void *arg);

/*
 * Call `each` with the record of one task, which may have ended: with state TDT_TASK_READY or TDT_TASK_PANICKED then (a
 * task that was dropped counts as that).  Returns what `each` did, or -EINVAL (and sets errno): a pointer is NULL.  Any
 * thread.
 */
int tdt_task_inspect(struct tdt_handle *handle, tdt_task_fn *each, void *arg);

/*
 * A handle of the live task with this id, for the caller to give back (tdt_handle_unref()).  NULL and errno ESRCH: there
 * is none.  If several tasks were given the same id, any of them.  Looks at every record: 10 to 20 ns for each.
 */
struct tdt_handle *tdt_task_find(uint64_t id);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
