/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_AT_REST_H
#define TESTS_AT_REST_H

/*
 * Waiting until the tasks of a program are at rest: for C and C++.  Each of them waits then, but
 * those that are in polls which do not end; and if TDT_WATCH is set, the last tree of each is that
 * of its last poll.
 */

#include <stdlib.h>
#include <unistd.h>

#include <tdt/tasks.h>
#include <tdt/trace.h>
#include <tdt/watch.h>

#include "lib/options.h"

static inline int has_last_tree(struct tdt_handle *handle)
{
	const char *watch = getenv("TDT_WATCH");
	struct tdt_trace *trace;
	int has;

	if (watch == NULL || atoi(watch) == 0)
		return 1;
	trace = tdt_backtrace_last(handle);
	has = trace != NULL && tdt_trace_info(trace)->polls_since == 0;
	tdt_trace_free(trace);
	return has;
}

/* The last poll came too soon after another one, or the watch was late: a request has it polled. */
static inline int note_unrest(struct tdt_handle *handle, const struct tdt_task_info *info,
			      void *n_restless)
{
	if (info->state == TDT_TASK_WAITING && info->polls != 0) {
		if (has_last_tree(handle))
			return 0;
		tdt_trace_free(backtrace_timed(handle, INT64_C(1000000000)));
	}
	++*(unsigned *)n_restless;
	return 0;
}

/* So many tasks are in polls that do not end, `n_polled`. */
static inline void wait_for_rest(unsigned n_polled)
{
	unsigned n_restless;

	do {
		usleep(20000);
		n_restless = 0;
		tdt_tasks(NULL, note_unrest, &n_restless);
	} while (n_restless != n_polled);
}

#endif
