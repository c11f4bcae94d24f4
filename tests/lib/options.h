/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_OPTIONS_H
#define TDT_TESTS_OPTIONS_H

/* Calls with options, in short. */

#include <tdt/dump.h>
#include <tdt/trace.h>

/* For tdt_dump_on_signal(). */
#define TO(file)                                                                                   \
	(&(struct tdt_signal_dump){ .size = sizeof(struct tdt_signal_dump), .path = (file) })

/* Also on a worker, and inside a poll of another task.  A limit of 0 does not wait. */
static inline TDT_MUST_USE struct tdt_trace *backtrace_timed(struct tdt_handle *handle,
							     int64_t timeout_ns)
{
	const struct tdt_backtrace_options options = {
		.size = sizeof options,
		.timeout_ns = timeout_ns,
		.flags = TDT_BACKTRACE_ON_WORKER | (timeout_ns == 0 ? TDT_BACKTRACE_NO_WAIT : 0U)
	};

	return tdt_backtrace_with(handle, &options);
}

#endif
