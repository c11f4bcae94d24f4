// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The trace of a task's last watched tree, with the task's present state. */

#include <errno.h>

#include <tdt/watch.h>

#include "base/clock.h"
#include "base/result.h"
#include "capture/judge.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/owners.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "tree/trace.h"
#include "watch/last_tree.h"

struct tdt_trace *tdt__tree_trace(const struct tdt_task_info *info,
				  const struct tdt_registry_tree *tree,
				  const struct tdt_registry_entry *entry)
{
	struct tdt__stacks *stacks = tdt__tree_stacks(tree, entry);
	struct tdt__unloads count = { 0 };

	if (stacks == NULL)
		return tdt__nothing(-ENOMEM);
	tdt__judge(stacks, &count);
	return tdt__trace_of(info, stacks);
}

struct tdt_trace *tdt__last_trace(struct tdt_handle *handle, uint64_t as_of)
{
	struct tdt__last_tree tree;
	struct tdt__task_info now;
	struct tdt_task_record record;
	struct tdt_trace *trace;
	struct tdt__unloads count = { 0 };
	uint64_t time;
	int error = handle == NULL ? -EINVAL : tdt__last_tree_read(handle, &tree);

	if (error != 0)
		return tdt__nothing(error);
	/*
	 * Read the record after the tree, so that the tree is of no later poll than the record, and
	 * the clock after both.
	 */
	tdt__registry_read(handle, &record);
	time = as_of != 0 ? as_of : tdt__clock();
	tdt__task_info(&now, handle, &record, time);
	tdt__judge(tree.stacks, &count);
	now.info.polls_since = record.polls - tree.polls;
	trace = tdt__trace_of(&now.info, tree.stacks);
	if (trace == NULL)
		return NULL;
	trace->info.age_ns = time > tree.when ? time - tree.when : 0;
	return trace;
}

struct tdt_trace *tdt_backtrace_last(struct tdt_handle *handle)
{
	struct tdt_trace *trace = tdt__last_trace(handle, 0);

	if (trace != NULL)
		tdt__name_owners(trace);
	return trace;
}
