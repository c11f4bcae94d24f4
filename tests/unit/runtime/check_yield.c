// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers runtime/yield.  A task lets others go first. */

#include <tdt/rt/runtime.h>

#include "lib/futures.h"
#include "lib/test.h"

CASE(yield)

TEST(it_is_pending_once_and_woken_meanwhile)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	struct tdt_future yield = tdt_yield_now();

	test_waker_init(&waker);
	ck_assert_uint_eq(tdt_future_poll(&yield, &cx), TDT_PENDING);
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_uint_eq(tdt_future_poll(&yield, &cx), TDT_READY);
	ck_assert_uint_eq(tdt_future_poll(&yield, &cx), TDT_PANICKED);
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_int_eq(waker.clones, 0);
	tdt_future_drop(&yield);

	yield = tdt_yield_now();
	tdt_future_drop(&yield);
}

static int yield_once(void *argument)
{
	struct tdt_future yield = tdt_yield_now();
	int result = tdt_future_is_none(&yield) ? -errno : 0;

	tdt_future_drop(&yield);
	return result;
}

TEST(a_lack_of_memory_is_told)
{
	no_memory_each(yield_once, NULL, 1);
}
