// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers tdt/future.h.  The inline helpers. */

#include "lib/futures.h"
#include "lib/test.h"

static struct test_waker waker;
static struct tdt_context cx = { &waker.waker };

static void setup(void)
{
	test_waker_init(&waker);
	test_events_clear();
}

CASE(futures, .setup = setup)

TEST(none_is_all_zero_and_known_as_none)
{
	struct tdt_future none = TDT_FUTURE_NONE;
	struct test_future state = { .name = 'a' };
	struct tdt_future some = test_future(&state);

	ck_assert_ptr_null(none.state);
	ck_assert(none.poll == NULL);
	ck_assert(none.drop == NULL);
	ck_assert(tdt_future_is_none(&none));
	ck_assert(!tdt_future_is_none(&some));
}

TEST(polling_none_panics)
{
	struct tdt_future none = TDT_FUTURE_NONE;

	ck_assert_uint_eq(tdt_future_poll(&none, &cx), TDT_PANICKED);
	ck_assert_uint_eq(tdt_future_poll(&none, &cx), TDT_PANICKED);
}

TEST(dropping_none_does_nothing)
{
	struct tdt_future none = TDT_FUTURE_NONE;

	tdt_future_drop(&none);
	ck_assert(tdt_future_is_none(&none));
}

TEST(a_poll_passes_on_what_the_future_says)
{
	struct test_future state = { .name = 'a', .pending = 1, .result = TDT_PANICKED };
	struct tdt_future future = test_future(&state);

	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PENDING);
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PANICKED);
	tdt_future_drop(&future);
	ck_assert_str_eq(test_events, "a. a# a~ ");
}

TEST(a_second_drop_does_nothing)
{
	struct test_future state = { .name = 'a' };
	struct tdt_future future = test_future(&state);

	tdt_future_drop(&future);
	ck_assert(tdt_future_is_none(&future));
	tdt_future_drop(&future);
	ck_assert_int_eq(state.drops, 1);
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PANICKED);
	ck_assert_int_eq(state.polls, 0);
}

/* A future that looks at itself while it is dropped. */
static struct tdt_future seen_from_inside;
static int drops_inside;

static void drop_again(void *state)
{
	drops_inside++;
	tdt_future_drop(&seen_from_inside);
}

static tdt_poll_t ready(void *state, struct tdt_context *unused)
{
	return TDT_READY;
}

TEST(a_future_is_none_already_while_its_drop_runs)
{
	seen_from_inside = (struct tdt_future){ NULL, ready, drop_again };
	tdt_future_drop(&seen_from_inside);
	ck_assert_int_eq(drops_inside, 1);
}

CASE(wakers, .setup = setup)

TEST(a_clone_is_ended_by_wake_or_by_drop)
{
	const struct tdt_waker *first = tdt_waker_clone(&waker.waker);
	const struct tdt_waker *second = tdt_waker_clone(&waker.waker);

	ck_assert_int_eq(waker.alive, 2);
	tdt_waker_wake(first);
	ck_assert_int_eq(waker.alive, 1);
	ck_assert_int_eq(waker.wakes, 1);
	tdt_waker_drop(second);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(waker.wakes, 1);
}

TEST(waking_by_reference_leaves_the_waker)
{
	const struct tdt_waker *clone = tdt_waker_clone(&waker.waker);

	tdt_waker_wake_by_ref(clone);
	tdt_waker_wake_by_ref(&waker.waker);
	ck_assert_int_eq(waker.wakes, 2);
	ck_assert_int_eq(waker.alive, 1);
	tdt_waker_drop(clone);
}

TEST(a_clone_that_fails_is_null_and_may_be_ended)
{
	const struct tdt_waker *clone;

	waker.fail_clone = true;
	clone = tdt_waker_clone(&waker.waker);
	ck_assert_ptr_null(clone);
	tdt_waker_wake(clone);
	tdt_waker_drop(clone);
	ck_assert_int_eq(waker.wakes, 0);
}

TEST(will_wake_is_the_same_object_and_nothing_else)
{
	struct test_waker other;
	const struct tdt_waker *clone = tdt_waker_clone(&waker.waker);

	test_waker_init(&other);
	ck_assert(tdt_waker_will_wake(clone, &waker.waker));
	ck_assert(!tdt_waker_will_wake(clone, &other.waker));
	ck_assert(!tdt_waker_will_wake(NULL, &waker.waker));
	tdt_waker_drop(clone);
}
