/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Labels: by the thread-local pointer `otel_thread_ctx_v1` (OpenTelemetry's OTEP 4947) a profiler
 * that has interrupted a thread finds the trace context of the task that the thread polls.
 *
 * While labels are on (TDT__EPOCH_LABELS), each poll has a copy of its task's context on the stack,
 * and each run of a fiber has one in the fiber; the pointer points to the innermost one.  So what
 * the profiler reads belongs to the thread alone, whoever sets the context meanwhile.  A pointer
 * that somebody else has set is left alone.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <tdt/context.h>

#include "capture/chain.h"
#include "host/thread.h"
#include "registry/contexts.h"
#include "registry/handle.h"
#include "watch/epoch.h"

static inline bool tdt__labels_on(void)
{
	return (tdt__epoch_word() & TDT__EPOCH_LABELS) != 0;
}

/* Find the address of this thread's pointer, which takes a call. */
struct tdt__label *volatile *tdt__label_find(void);

/* Each label that tdt__label_end() is called for: it is called whether or not the poll has one. */
static inline void tdt__label_init(struct tdt__label *label)
{
	label->outer = NULL;
}

/*
 * A poll of the task begins on this thread.
 *
 * The label of the outer poll is left over, if there is no such poll: its poll has ended on another
 * thread.  A profiler interrupts the thread, so the order of the stores is that of the program.
 */
static inline void tdt__label_begin(struct tdt__label *label, const struct tdt__poll *poll,
				    const struct tdt_handle *task)
{
	struct tdt__label *volatile *pointer = tdt__thread.labelled;

	if (__builtin_expect(pointer == NULL, 0))
		pointer = tdt__label_find();
	if (*pointer != tdt__thread.label)
		return;
	tdt__context_copy(task, &label->context);
	label->poll = poll;
	label->outer = poll->outer != NULL ? tdt__thread.label : NULL;
	tdt__thread.label = label;
	atomic_signal_fence(memory_order_release);
	*pointer = label;
}

/* The poll, which may have no label, is over, on any thread. */
static inline void tdt__label_end(const struct tdt__label *label)
{
	struct tdt__thread *here = tdt__thread_here(); /* the child may have changed the thread */

	if (here->label != label)
		return;
	here->label = label->outer;
	if (*here->labelled == label)
		*here->labelled = label->outer;
	atomic_signal_fence(memory_order_release); /* before the label is gone */
}

/* The polls inside of `outer` leave the thread: the stack that they are on is suspended. */
void tdt__label_suspend(const struct tdt__poll *outer);

/* The task has another context, or none (NULL): say so in its poll, if this thread is in it. */
void tdt__label_set(const struct tdt_handle *task, const struct tdt_trace_context *context);

/* Switch labels on, if TDT_CONTEXT_LABELS says so. */
void tdt__labels_by_environment(void);
