/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_IDLE_H
#define TESTS_IDLE_H

/* Functions for futures and wakers that have nothing to do. */

#include <tdt/trace.h>

void drop_nothing(void *state);
tdt_poll_t stay_pending(void *state, struct tdt_context *cx);

const struct tdt_waker *clone_itself(const struct tdt_waker *waker);
void ignore_waker(const struct tdt_waker *waker);

/* A waker of these: it wakes nobody. */
extern const struct tdt_waker idle_waker;

/* Poll with that waker. */
static inline tdt_poll_t poll_idly(const struct tdt_future *future)
{
	struct tdt_context cx = { &idle_waker };

	return tdt_future_poll(future, &cx);
}

/* Drop the future and give the handle back. */
static inline void end_traced(struct tdt_traced *traced)
{
	tdt_future_drop(&traced->future);
	tdt_handle_unref(traced->handle);
}

#endif
