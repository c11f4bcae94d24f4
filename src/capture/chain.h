/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A traced poll in progress: a link of its thread's chain of polls.  It lies on the stack of the
 * thread that polls.
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/context.h>

#include "host/thread.h"

struct tdt_handle;
struct tdt__capture;
struct tdt__request;
struct tdt_recording_ring;
struct tdt_stack;

struct tdt__poll {
	struct tdt_handle *task;       /* NULL: the poll has not begun, or has ended */
	struct tdt__poll *outer;       /* the poll that this one is inside of; NULL: none */
	/* The capture of one of `requests`, or a spare one for the watch; NULL: none is needed. */
	struct tdt__capture *capture;
	/* With a capture: TDT__OWN_TOP() of the function that polls the child. */
	uintptr_t top;
	/* With a capture: the entered stack that `top` is on; NULL: `top` is on another stack. */
	const struct tdt_stack *stack;
	struct tdt__request *requests; /* the requests that the capture answers */
};

/* What the recorder keeps of such a poll (recorder/record.h). */
struct tdt__record_poll {
	struct tdt_recording_ring *ring; /* NULL: there was none */
	uint64_t start;
	uint64_t woken_by;
	uint8_t detail; /* what is known of it at the start */
	bool is_recorded;
	/* What the thread polled when this poll began. */
	uint64_t outer_task, outer_since, outer_own;
};

/* The label of such a poll, which profilers find (task/label.h). */
struct tdt__label {
	struct tdt_trace_context context; /* the first field, because the pointer points to it */
	const struct tdt__poll *poll;	  /* whose label it is */
	struct tdt__label *outer;	  /* of the poll that this one is inside of; NULL: none */
};

/* The poll of `task` that is in progress on this thread; NULL: there is none. */
static inline struct tdt__poll *tdt__poll_here(const struct tdt_handle *task)
{
	struct tdt__poll *poll = tdt__thread_here()->poll;

	while (poll != NULL && poll->task != task)
		poll = poll->outer;
	return poll;
}

static inline bool tdt__polled_here(const struct tdt_handle *task)
{
	return tdt__poll_here(task) != NULL;
}

/* In a child of fork(): the same polls are in progress, but their thread has another id. */
void tdt__polls_forked(void);
