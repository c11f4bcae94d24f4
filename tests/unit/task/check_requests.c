// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/request, dump/backtrace.  Which task is woken and polled how often for a request, and
 * which poll answers it.
 */

#include "lib/listed.h"
#include "lib/options.h"
#include "lib/requester.h"
#include "lib/test.h"

#define MANY 20

static void ask_many(struct test_requester *requester, struct tdt_handle *handle)
{
	for (int i = 0; i < MANY; i++)
		test_ask(&requester[i], handle);
}

static void expect_one_answer(struct test_requester *requester, uint64_t polls)
{
	for (int i = 0; i < MANY; i++) {
		const struct tdt_task_info *info = test_answer(&requester[i]);

		ck_assert_uint_eq(info->polls, polls);
		ck_assert_uint_eq(info->leaves, 1);
		test_requester_fini(&requester[i]);
	}
}

CASE(polls)

TEST(many_that_ask_an_idle_task_are_answered_by_one_wake_and_one_poll)
{
	struct test_requester requester[MANY];
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	for (int round = 0; round < 3; round++) {
		test_task_poll(&task);
		ask_many(requester, task.handle);
		ck_assert_int_eq(task.waker.wakes, 1);
		ck_assert_int_eq(test_task_run(&task), 1);
		expect_one_answer(requester, 2 * (uint64_t)round + 2);
		ck_assert_int_eq(task.waker.wakes, 0);
	}
}

TEST(those_that_ask_before_the_first_poll_wait_for_it_and_wake_nobody)
{
	struct test_requester requester[MANY];
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	ask_many(requester, task.handle);
	ck_assert(!test_answered(&requester[0]));
	test_task_poll(&task);
	ck_assert_int_eq(task.waker.wakes, 0);
	expect_one_answer(requester, 1);
}

struct asking_others {
	struct test_requester requester[MANY];
	struct tdt_handle *handle;
};

static void ask_all(void *argument)
{
	struct asking_others *others = argument;

	ask_many(others->requester, others->handle);
}

TEST(those_that_ask_during_a_poll_get_one_more_poll)
{
	struct asking_others others;
	struct test_busy busy = { ask_all, &others, TDT_PENDING, 0 };
	struct tdt_future child = test_busy_future(&busy);
	struct test_requester late;
	TEST_TASK(task, &child);

	others.handle = task.handle;
	test_task_poll(&task);
	ck_assert_int_eq(task.waker.wakes, 1);
	busy.act = NULL;
	test_ask(&late, task.handle); /* the poll that is on its way will answer this one, too */
	ck_assert_int_eq(task.waker.wakes, 1);
	ck_assert_int_eq(test_task_run(&task), 1);
	ck_assert_uint_eq(test_answer(&late)->polls, 2);
	test_requester_fini(&late);
	expect_one_answer(others.requester, 2);
}

TEST(nobody_asks_nobody_is_woken)
{
	struct test_requester requester;
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	test_task_poll(&task);
	test_ask(&requester, task.handle);
	ck_assert_int_eq(test_task_run(&task), 1);
	test_answer(&requester);
	test_requester_fini(&requester);
	for (int i = 0; i < 3; i++)
		test_task_poll(&task);
	ck_assert_int_eq(task.waker.wakes, 0);
	ck_assert_int_eq(task.leaf.polls, 5);
}

static void *ask_blocking(void *argument)
{
	return backtrace_timed(argument, INT64_C(60000000000));
}

TEST(threads_that_block_are_answered_by_one_poll)
{
	pthread_t thread[MANY];
	void *trace;
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	test_task_poll(&task);
	threads_start(thread, MANY, ask_blocking, task.handle);
	/* A requester wakes the task when its request is listed, perhaps after all others are. */
	while (listed(task.handle) < MANY || task.waker.wakes == 0)
		sched_yield();
	ck_assert_int_eq(task.waker.wakes, 1);
	ck_assert_int_eq(test_task_run(&task), 1);
	for (int i = 0; i < MANY; i++) {
		pthread_join(thread[i], &trace);
		ck_assert_ptr_nonnull(trace);
		ck_assert_uint_eq(tdt_trace_info(trace)->polls, 2);
		tdt_trace_free(trace);
	}
}

/* A runtime that polls a task inside its wake, as simple ones do. */
struct inline_runtime {
	struct tdt_waker waker;
	struct tdt_future *future;
};

static void poll_now(const struct tdt_waker *waker)
{
	struct tdt_context cx = { waker };

	tdt_future_poll(((const struct inline_runtime *)(const void *)waker)->future, &cx);
}

TEST(no_time_is_enough_where_the_wake_polls)
{
	static const struct tdt_waker_vtable vtable = { clone_itself, poll_now, poll_now,
							ignore_waker };
	struct inline_runtime runtime = { { &vtable }, NULL }; /* lives longer than the task */
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	runtime.future = &task.future;
	poll_now(&runtime.waker);
	TRACE(trace, backtrace_timed(task.handle, 0));
	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 1);
}

/* A task that awaits its own backtrace. */
struct introspective {
	struct tdt_future requester;
	struct tdt_handle *handle;
	struct tdt_trace *trace;
	int error;
};

static tdt_poll_t await_own_backtrace(void *state, struct tdt_context *cx)
{
	struct introspective *self = state;

	if (tdt_future_is_none(&self->requester))
		self->requester = tdt_backtrace_async(self->handle, NULL, &self->trace,
						      &self->error);
	return tdt_future_poll(&self->requester, cx);
}

CASE(async)

TEST(a_task_may_await_its_own_backtrace)
{
	struct introspective self = { .error = 1 };
	TEST_TASK(task, (&(struct tdt_future){ &self, await_own_backtrace, drop_nothing }));

	self.handle = task.handle;
	ck_assert_int_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert_int_eq(test_task_run(&task), 2); /* one to capture, one to see the answer */
	ck_assert_int_eq(self.error, 0);
	ck_assert_ptr_nonnull(self.trace);
	ck_assert_uint_eq(tdt_trace_info(self.trace)->leaves, 1);
	ck_assert_int_eq(test_nodes_of(self.trace, "await_own_backtrace"), 1);
	tdt_future_drop(&self.requester);
	tdt_trace_free(self.trace);
}

TEST(the_waker_of_the_last_poll_is_woken_by_the_answer)
{
	struct test_waker other;
	struct tdt_context cx = { &other.waker };

	test_waker_init(&other);
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	ASKED(requester, task.handle);
	ck_assert_int_eq(tdt_future_poll(&requester.future, &cx), TDT_PENDING);
	ck_assert_int_eq(requester.waker.alive, 0);
	test_task_poll(&task);
	ck_assert_int_eq(requester.waker.wakes, 0);
	ck_assert_int_eq(other.wakes, 1);
	ck_assert_int_eq(other.alive, 0);
	ck_assert_int_eq(tdt_future_poll(&requester.future, &cx), TDT_READY);
}

TEST(an_answer_is_written_only_from_the_requesters_own_poll_and_once)
{
	struct test_requester requester;
	struct tdt_context cx = { &requester.waker.waker };
	struct tdt_trace *trace;
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	test_ask(&requester, task.handle);
	test_task_poll(&task);
	ck_assert(requester.trace == NULL && requester.error == 1);
	test_answer(&requester);
	trace = requester.trace;
	ck_assert_int_eq(tdt_future_poll(&requester.future, &cx), TDT_PANICKED);
	ck_assert(requester.trace == trace && requester.error == 0);
	test_requester_fini(&requester);
}

TEST(a_requester_need_not_want_to_know_the_error)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	struct tdt_trace *trace = (void *)1;
	struct tdt_future requester;

	test_waker_init(&waker);
	TEST_TASK(task, NULL, .name = 'a', .pending = 1);
	tdt_future_drop(&task.future);
	requester = tdt_backtrace_async(task.handle, NULL, &trace, NULL);
	ck_assert_int_eq(tdt_future_poll(&requester, &cx), TDT_READY);
	ck_assert_ptr_null(trace);
	tdt_future_drop(&requester);
	ck_assert_int_eq(waker.alive, 0);
}

TEST(a_handle_may_be_given_back_while_its_question_is_open)
{
	struct test_task task = { .leaf = { .name = 'a', .pending = 1 } };
	struct test_requester requester;

	/* The future outlives it. */
	test_task_init(&task, NULL);
	test_ask(&requester, task.handle);
	tdt_handle_unref(task.handle);
	task.handle = NULL;
	test_task_poll(&task);
	test_answer(&requester);
	test_requester_fini(&requester);
	test_task_fini(&task);

	/* Nothing outlives it but the question. */
	task = (struct test_task){ .leaf = { .name = 'a', .pending = 1 } };
	test_task_init(&task, NULL);
	test_ask(&requester, task.handle);
	test_task_fini(&task);
	ck_assert(test_answered(&requester));
	ck_assert_int_eq(requester.error, -ESRCH);
	test_requester_fini(&requester);
}

TEST(a_question_that_was_never_polled_is_none)
{
	struct tdt_trace *trace = NULL;
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	test_task_poll(&task);
	FUTURE(requester, tdt_backtrace_async(task.handle, NULL, &trace, NULL));
	ck_assert_int_eq(task.waker.wakes, 0);
}

static void withdraw(void *argument)
{
	test_requester_fini(argument);
}

TEST(a_question_may_be_dropped_in_flight)
{
	struct test_requester requester, other;
	struct test_busy busy = { withdraw, &requester, TDT_PENDING, 0 };
	struct tdt_future child = test_busy_future(&busy);
	TEST_TASK(task, &child);

	/* While it is listed. */
	test_ask(&requester, task.handle);
	test_ask(&other, task.handle);
	test_requester_fini(&requester);
	ck_assert_int_eq(listed(task.handle), 1);
	test_requester_fini(&other);
	ck_assert_int_eq(listed(task.handle), 0);
	/* While the poll that took it runs; another that it took is answered all the same. */
	test_ask(&requester, task.handle);
	test_ask(&other, task.handle);
	busy.argument = &other;
	test_task_poll(&task);
	busy.act = NULL;
	test_answer(&requester);
	test_requester_fini(&requester);
	/* When it is answered and nobody has looked. */
	test_ask(&requester, task.handle);
	test_task_run(&task);
	test_requester_fini(&requester);
}

TEST(a_requester_whose_waker_cannot_be_cloned_is_told_so)
{
	struct test_requester requester;
	struct tdt_context cx = { &requester.waker.waker };
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	/* At its first poll, before it is requested; and at the second. */
	for (int polls = 0; polls < 2; polls++) {
		requester = (struct test_requester){ .error = 1 };
		test_waker_init(&requester.waker);
		requester.future =
		    tdt_backtrace_async(task.handle, NULL, &requester.trace, &requester.error);
		for (int i = 0; i < polls; i++)
			ck_assert_int_eq(tdt_future_poll(&requester.future, &cx), TDT_PENDING);
		requester.waker.fail_clone = true;
		ck_assert_int_eq(tdt_future_poll(&requester.future, &cx), TDT_READY);
		ck_assert(requester.trace == NULL && requester.error == -ENOMEM);
		ck_assert_int_eq(listed(task.handle), 0);
		test_requester_fini(&requester);
	}
}
