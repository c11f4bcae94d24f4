/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Labels: by the thread-local pointer `otel_thread_ctx_v1` (OpenTelemetry's OTEP 4947) a profiler
 * that has interrupted a thread finds the trace context of the task that the thread polls.
 *
 * While labels are on (TDT__EPOCH_LABELS), each poll has a copy of its task's context on the stack,
 * and the pointer points to the innermost one.  So what the profiler reads belongs to the thread
 * alone, whoever sets the context meanwhile.  A pointer that somebody else has set is left alone.
 */

#include <stdbool.h>

#include <tdt/context.h>

#include "watch/epoch.h"

struct tdt_handle;

struct tdt__label {
	struct tdt_trace_context context; /* the first field, because the pointer points to it */
	const struct tdt_handle *task;	  /* NULL: the poll has no label */
	struct tdt__label *outer;	  /* of the poll that this one is inside of; NULL: none */
};

static inline bool tdt__labels_on(void)
{
	return (tdt__epoch_word() & TDT__EPOCH_LABELS) != 0;
}

/* A poll of the task begins on this thread; if `label->task` is set then, it has a label. */
void tdt__label_begin(struct tdt__label *label, const struct tdt_handle *task);
/* The poll is over, on any thread. */
void tdt__label_end(struct tdt__label *label);

/* The task has another context, or none (NULL): say so in its poll, if this thread is in it. */
void tdt__label_set(const struct tdt_handle *task, const struct tdt_trace_context *context);

/* Switch labels on, if TDT_CONTEXT_LABELS says so. */
void tdt__labels_by_environment(void);
