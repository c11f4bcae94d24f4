/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_HAND_H
#define TESTS_HAND_H

/* A traced task that a test polls by hand, for tests of the recorder. */

#include <check.h>
#include <string.h>

#include <tdt/trace.h>

#include "lib/futures.h"
#include "lib/scoped.h"

struct hand {
	struct test_future leaf;
	struct test_waker waker;
	struct tdt_traced task;
};

/* It is pending in so many polls; the next one returns `result`. */
static inline void hand_begin(struct hand *hand, int pending, tdt_poll_t result, const char *name)
{
	memset(hand, 0, sizeof *hand);
	hand->leaf = (struct test_future){ .name = 'a', .pending = pending, .result = result };
	test_waker_init(&hand->waker);
	hand->task = tdt_traced_with(test_future(&hand->leaf), TDT_TASK_ATTR(.name = name));
	ck_assert_ptr_nonnull(hand->task.handle);
}

static inline tdt_poll_t hand_poll(struct hand *hand)
{
	struct tdt_context cx = { &hand->waker.waker };

	return tdt_future_poll(&hand->task.future, &cx);
}

static inline uint64_t hand_id(const struct hand *hand)
{
	return tdt_handle_id(hand->task.handle);
}

static inline void hand_end(struct hand *hand)
{
	tdt_future_drop(&hand->task.future);
	tdt_handle_unref(hand->task.handle);
}

/* Declare one that begins here, as the rest says, and ends with the block. */
#define HAND(name, ...)                                                                            \
	SCOPED(hand_end) struct hand name;                                                         \
	const bool name##_begun __attribute__((unused)) = (hand_begin(&name, __VA_ARGS__), true)

#endif
