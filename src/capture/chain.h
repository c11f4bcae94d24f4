/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_CHAIN_H
#define TDT_SRC_CAPTURE_CHAIN_H

/* A traced poll in progress: a link of its thread's chain.  It lives on the poller's stack. */

#include <stdbool.h>
#include <stdint.h>

#include "host/thread.h"

struct tdt_handle;
struct tdt__capture;
struct tdt__request;
struct tdt_stack;

struct tdt__poll {
	struct tdt_handle *task;       /* NULL: not begun, or all is done */
	struct tdt__poll *outer;       /* the poll this one is inside of; NULL: none */
	struct tdt__capture *capture;  /* of one of `requests`, or one that was ready; NULL: nobody asked */
	uintptr_t top;                 /* with a capture: TDT__OWN_TOP() of the function that polls the child */
	const struct tdt_stack *stack; /* with a capture: that `top` is on, if it was entered; NULL: another */
	struct tdt__request *requests; /* those that the capture answers */
};

/* The poll of `task` that this thread is in the middle of; NULL: it is in none. */
static inline struct tdt__poll *tdt__poll_here(const struct tdt_handle *task)
{
	struct tdt__poll *poll = tdt__thread.poll;

	while (poll != NULL && poll->task != task)
		poll = poll->outer;
	return poll;
}

static inline bool tdt__polled_here(const struct tdt_handle *task)
{
	return tdt__poll_here(task) != NULL;
}

/* In a child of fork(): its thread is in the middle of the same polls, with another id. */
void tdt__polls_forked(void);

#endif
