// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers host/barrier.  Requests where the kernel refuses membarrier(): both sides use fences then.
 */

#include "host/barrier.h"
#include "lib/refuse_call.h"
#include "lib/requester.h"
#include "lib/test.h"

static void expect_answer(struct test_task *task)
{
	ASKED(requester, task->handle);

	ck_assert_int_eq(task->waker.wakes, 1);
	test_task_poll(task);
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
}

CASE(barrier)

TEST(where_membarrier_is_refused_from_the_beginning_tasks_are_woken_and_answer, .to = 2)
{
	if (!refuse_call(SYS_membarrier, _i == 0 ? EPERM : ENOSYS))
		return;
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	ck_assert(tdt__barrier_fences);
	test_task_poll(&task);
	expect_answer(&task);
}

TEST(where_it_is_refused_later_they_do_so_too)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	test_task_poll(&task);
	if (refuse_call(SYS_membarrier, EPERM)) {
		expect_answer(&task);
		ck_assert(tdt__barrier_fences);
	}
}
