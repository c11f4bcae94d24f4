// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The last tree of a watched task, with what is known of the task now. */

#include <config.h>

#include <errno.h>

#include <tdt/watch.h>

#include "capture.h"
#include "clock.h"
#include "handle.h"
#include "judge.h"
#include "registry.h"
#include "tasks.h"
#include "trace.h"
#include "unloads.h"
#include "watched.h"

/* Say in the capture what the record says, as if it had been captured now.  False: no memory. */
static bool bring_up_to_date(struct tdt__capture *capture, const struct tdt_trace_info *info)
{
	capture->state = info->state;
	capture->state_ns = info->state_ns;
	capture->polls = info->polls;
	capture->woken_ns = info->woken_ns;
	capture->woken_by = info->woken_by;
	capture->thread = info->thread;
	for (uint32_t i = 0; i < info->n_waits; i++)
		tdt__capture_wait(capture, info->waits[i]);
	return capture->n_waits == info->n_waits;
}

struct tdt_trace *tdt__watched_trace(struct tdt_handle *handle, uint64_t as_of)
{
	struct tdt__watched_tree tree;
	struct tdt__task_info now;
	struct tdt_record record;
	struct tdt_trace *trace;
	struct tdt__unloads count = { 0 };
	uint64_t time;
	int error = handle == NULL ? -EINVAL : tdt__watched_read(handle, &tree);

	if (error != 0) {
		errno = -error;
		return NULL;
	}
	/* After the tree, which so is of no later poll; and the time after that. */
	tdt__registry_read(handle, &record);
	time = as_of != 0 ? as_of : tdt__clock();
	tdt__task_info(&now, &record, time);
	if (!bring_up_to_date(tree.capture, &now.info)) {
		tdt__capture_unref(tree.capture);
		errno = ENOMEM;
		return NULL;
	}
	tdt__judge(tree.capture, &count);
	trace = tdt__trace_captured(handle, tree.capture);
	if (trace == NULL)
		return NULL;
	trace->info.age_ns = time > tree.when ? time - tree.when : 0;
	trace->info.polls_since = record.polls - tree.polls;
	return trace;
}

struct tdt_trace *tdt_backtrace_last(struct tdt_handle *handle)
{
	return tdt__watched_trace(handle, 0);
}
