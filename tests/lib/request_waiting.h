/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_ASK_WAITING_H
#define TESTS_ASK_WAITING_H

/* For questions to tasks of a runtime, whose threads may be held up wherever they are. */

#include <check.h>
#include <stdint.h>

#include <tdt/trace.h>
#include <tdt/tree.h>

/*
 * Ask a task that waits, or soon will.  One that is held up in the poll that is to answer has its
 * stack read instead: then it is requested again.
 */
static inline struct tdt_trace *request_waiting(struct tdt_handle *handle)
{
	const struct tdt_backtrace_options options = { .size = sizeof options,
						       .timeout_ns = INT64_C(30000000000) };
	struct tdt_trace *trace = tdt_backtrace_with(handle, &options);

	ck_assert_ptr_nonnull(trace);
	while (tdt_trace_info(trace)->state == TDT_TASK_RUNNING) {
		tdt_trace_free(trace);
		trace = tdt_backtrace_with(handle, &options);
		ck_assert_ptr_nonnull(trace);
	}
	return trace;
}

#endif
