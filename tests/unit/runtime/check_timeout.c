// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers runtime/timeout.  tdt_timeout_ms(): which side wins, and what is dropped when. */

#include <tdt/rt/runtime.h>

#include "lib/driven.h"
#include "lib/futures.h"
#include "lib/test.h"

#define HOUR UINT64_C(3600000)

static struct test_waker waker;
static struct tdt_context cx = { &waker.waker };
static struct test_future a;
static bool elapsed;

static void setup(void)
{
	driven_setup();
	test_waker_init(&waker);
	test_events_clear();
	a = (struct test_future){ .name = 'a' };
	elapsed = true;
}

CASE(timeout, .setup = setup, .teardown = driven_teardown)

TEST(a_future_that_is_ready_at_once_wins, .to = 2)
{
	struct tdt_future timeout = tdt_timeout_ms(test_future(&a), (uint64_t)_i, &elapsed);

	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_READY);
	ck_assert(!elapsed);
	ck_assert_str_eq(test_events, "a! a~ ");
	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_PANICKED);
	tdt_future_drop(&timeout);
	ck_assert_str_eq(test_events, "a! a~ ");
}

TEST(a_future_that_is_ready_later_wins_and_cancels_the_timer)
{
	FUTURE(timeout, tdt_timeout_ms(test_future(&a), HOUR, &elapsed));

	a.pending = 1;
	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_PENDING);
	ck_assert_int_eq(waker.clones, 2);
	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_READY);
	ck_assert(!elapsed);
	ck_assert_str_eq(test_events, "a. a! a~ ");
	ck_assert_int_eq(waker.alive, 0);
}

TEST(when_time_is_up_the_future_is_dropped_at_once)
{
	struct driven *task = driven_new(tdt_timeout_ms(test_future(&a), 20, &elapsed));
	uint64_t before = driven_now_ns();

	a.pending = 9;
	elapsed = false;
	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	driven_wait(task);
	ck_assert_uint_eq(driven_poll(task), TDT_READY);
	ck_assert_uint_ge(driven_now_ns() - before, 20000000);
	ck_assert(elapsed);
	ck_assert_str_eq(test_events, "a. a. a~ ");
	ck_assert_int_eq(driven_wakers(task), 0);
	driven_end(task);
	ck_assert_int_eq(a.drops, 1);
}

TEST(the_future_wins_when_both_are_due)
{
	DRIVEN(task, driven_new(tdt_timeout_ms(test_future(&a), 1, &elapsed)));

	a.pending = 1;
	ck_assert_uint_eq(driven_poll(task), TDT_PENDING);
	driven_wait(task);
	ck_assert_uint_eq(driven_poll(task), TDT_READY);
	ck_assert(!elapsed);
}

TEST(no_time_polls_the_future_once)
{
	FUTURE(timeout, tdt_timeout_ms(test_future(&a), 0, &elapsed));

	a.pending = 9;
	elapsed = false;
	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_READY);
	ck_assert(elapsed);
	ck_assert_str_eq(test_events, "a. a~ ");
}

TEST(it_panics_if_the_future_does)
{
	FUTURE(timeout, tdt_timeout_ms(test_future(&a), HOUR, &elapsed));

	a.pending = 1;
	a.result = TDT_PANICKED;
	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_PENDING);
	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_PANICKED);
	ck_assert(elapsed); /* as it was */
	ck_assert_str_eq(test_events, "a. a# a~ ");
	ck_assert_int_eq(waker.alive, 0);
}

TEST(it_panics_where_there_is_no_timer)
{
	struct tdt__driver *driver = driven_driver();
	struct tdt_future timeout = tdt_timeout_ms(test_future(&a), 1, NULL);

	a.pending = 9;
	driven_use(NULL);
	errno = 0;
	ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_PANICKED);
	ck_assert_int_eq(errno, ENOTSUP);
	ck_assert_str_eq(test_events, "a. a~ ");
	tdt_future_drop(&timeout);
	driven_use(driver);
}

TEST(dropping_it_drops_the_future_and_cancels_the_timer, .to = 2)
{
	struct tdt_future timeout = tdt_timeout_ms(test_future(&a), HOUR, &elapsed);

	a.pending = 9;
	if (_i == 1)
		ck_assert_uint_eq(tdt_future_poll(&timeout, &cx), TDT_PENDING);
	tdt_future_drop(&timeout);
	ck_assert_str_eq(test_events, _i == 1 ? "a. a~ " : "a~ ");
	ck_assert_int_eq(waker.alive, 0);
}

TEST(elapsed_may_be_null)
{
	ck_assert_uint_eq(drive(tdt_timeout_ms(tdt_sleep_ms(HOUR), 1, NULL)), TDT_READY);
	ck_assert_uint_eq(drive(tdt_timeout_ms(tdt_sleep_ms(1), HOUR, NULL)), TDT_READY);
}

TEST(timeouts_nest)
{
	bool inner = false;

	ck_assert_uint_eq(
	    drive(tdt_timeout_ms(tdt_timeout_ms(tdt_sleep_ms(HOUR), 5, &inner), HOUR, &elapsed)),
	    TDT_READY);
	ck_assert(inner);
	ck_assert(!elapsed);
}

TEST(none_is_refused)
{
	struct tdt_future timeout;

	errno = 0;
	timeout = tdt_timeout_ms(TDT_FUTURE_NONE, 1, &elapsed);
	ck_assert(tdt_future_is_none(&timeout));
	ck_assert_int_eq(errno, EINVAL);
	errno = 0;
	timeout = tdt_timeout_ms((struct tdt_future){ &a, test_future(&a).poll, NULL }, 1,
				 &elapsed);
	ck_assert(tdt_future_is_none(&timeout));
	ck_assert_int_eq(errno, EINVAL);
}

static int make_a_timeout(void *argument)
{
	struct tdt_future inner = tdt_sleep_ms(1), timeout;

	if (tdt_future_is_none(&inner))
		return -errno;
	timeout = tdt_timeout_ms(inner, 1, argument);
	if (tdt_future_is_none(&timeout)) {
		tdt_future_drop(&inner);
		return -ENOMEM;
	}
	tdt_future_drop(&timeout);
	return 0;
}

TEST(without_memory_the_future_stays_the_callers)
{
	no_memory_each(make_a_timeout, &elapsed, 3);
}
