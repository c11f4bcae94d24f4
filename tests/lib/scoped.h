/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_SCOPED_H
#define TESTS_SCOPED_H

/*
 * Variables that end with their block: each macro declares `name`.  A pointer is there, or the test
 * fails.
 *
 *	TRACE(trace, tdt_backtrace(task.handle));
 *	TEXT(text, print(trace, OPTIONS(ASCII)));
 *
 * The last one declared ends first.  What it uses in its end is declared before it: in Clang's code
 * what was declared after it is gone by then.
 */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdt/dump.h>
#include <tdt/integrate/leaf.h>
#include <tdt/trace.h>

#include "lib/idle.h"
#include "lib/must.h"

/* Some are there for their beginning and their end alone. */
#define SCOPED(end) __attribute__((unused, cleanup(end)))

#define SCOPED_POINTER(type, end, name, ...)                                                       \
	SCOPED(end) type name = ({                                                                 \
		type name##_given = __VA_ARGS__;                                                   \
                                                                                                   \
		MUST(name##_given != NULL);                                                        \
		name##_given;                                                                      \
	})

#define TRACE(name, ...) SCOPED_POINTER(struct tdt_trace *, scoped_trace_end, name, __VA_ARGS__)
#define SNAPSHOT(name, ...)                                                                        \
	SCOPED_POINTER(const struct tdt_snapshot *, scoped_snapshot_end, name, __VA_ARGS__)
#define TEXT(name, ...) SCOPED_POINTER(char *, scoped_text_end, name, __VA_ARGS__)
#define HANDLE(name, ...) SCOPED_POINTER(struct tdt_handle *, scoped_handle_end, name, __VA_ARGS__)

/* A file that is closed; whether that goes well is not claimed. */
#define STREAM(name, ...) SCOPED_POINTER(FILE *, scoped_stream_end, name, __VA_ARGS__)

/* A task without a future, of tdt_task_new(). */
#define FUTURELESS(name, ...)                                                                      \
	SCOPED_POINTER(struct tdt_handle *, scoped_task_end, name, __VA_ARGS__)

/* A future that is dropped. */
#define FUTURE(name, ...) SCOPED(tdt_future_drop) struct tdt_future name = __VA_ARGS__

/* A struct tdt_traced, whose handle is there. */
#define TRACED(name, ...)                                                                          \
	SCOPED(end_traced) struct tdt_traced name = ({                                             \
		struct tdt_traced name##_given = __VA_ARGS__;                                      \
                                                                                                   \
		MUST(name##_given.handle != NULL);                                                 \
		name##_given;                                                                      \
	})

static inline void scoped_trace_end(struct tdt_trace **trace)
{
	tdt_trace_free(*trace);
}

static inline void scoped_snapshot_end(const struct tdt_snapshot **snapshot)
{
	tdt_snapshot_free(*snapshot);
}

static inline void scoped_text_end(char **text)
{
	free(*text);
}

static inline void scoped_stream_end(FILE **stream)
{
	fclose(*stream);
}

static inline void scoped_task_end(struct tdt_handle **task)
{
	tdt_task_end(*task);
}

static inline void scoped_handle_end(struct tdt_handle **handle)
{
	tdt_handle_unref(*handle);
}

#endif
