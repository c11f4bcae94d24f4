// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/request, dump/backtrace.  Every way in which a request is refused: the task ends, the
 * request is wrong, it comes in the wrong place, or its timeout is too short.
 */

#include <tdt/integrate/hooks.h>

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

struct asking_others {
	struct test_requester requester[MANY];
	struct tdt_handle *handle;
};

static void ask_all(void *argument)
{
	struct asking_others *others = argument;

	ask_many(others->requester, others->handle);
}

/* --- The end ----------------------------------------------------------------------------- */

static void expect_no_trace(struct tdt_trace *trace, int error)
{
	ck_assert_ptr_null(trace);
	ck_assert_int_eq(errno, error);
	errno = 0;
}

static void expect_gone(struct tdt_handle *handle)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	struct tdt_trace *trace = (void *)1;
	int error = 1;
	struct tdt_future requester = tdt_backtrace_async(handle, NULL, &trace, &error);

	test_waker_init(&waker);
	errno = 0;
	expect_no_trace(tdt_backtrace(handle), ESRCH);
	expect_no_trace(backtrace_timed(handle, 0), ESRCH);
	expect_no_trace(tdt_backtrace_with(handle, NULL), ESRCH);
	ck_assert_int_eq(tdt_future_poll(&requester, &cx), TDT_READY);
	ck_assert(trace == NULL && error == -ESRCH);
	tdt_future_drop(&requester);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(listed(handle), 0);
}

CASE(end)

TEST(a_task_that_has_ended_cannot_be_asked)
{
	const tdt_poll_t results[] = { TDT_READY, TDT_PANICKED };

	for (int i = 0; i < 3; i++) {
		TEST_TASK(task, NULL, .name = 'a', .result = results[i % 2]);

		if (i < 2)
			test_task_poll(&task);
		else
			tdt_future_drop(&task.future);
		expect_gone(task.handle);
	}
}

TEST(a_poll_that_ends_the_task_answers_what_it_took_and_refuses_what_came_later)
{
	const tdt_poll_t results[] = { TDT_READY, TDT_PANICKED };
	const enum tdt_task_state states[] = { TDT_TASK_READY, TDT_TASK_PANICKED };

	for (int i = 0; i < 2; i++) {
		struct asking_others others;
		struct test_busy busy = { ask_all, &others, results[i], 0 };
		struct tdt_future child = test_busy_future(&busy);
		struct test_requester before;
		TEST_TASK(task, &child);

		others.handle = task.handle;
		test_ask(&before, task.handle);
		ck_assert_int_eq(test_task_poll(&task), results[i]);
		ck_assert_int_eq(test_answer(&before)->state, states[i]);
		ck_assert_uint_eq(tdt_trace_info(before.trace)->leaves, 1);
		ck_assert_uint_eq(tdt_trace_info(before.trace)->state_ns, 0);
		test_requester_fini(&before);
		for (int j = 0; j < MANY; j++) {
			ck_assert(test_answered(&others.requester[j]));
			ck_assert_int_eq(others.requester[j].error, -ESRCH);
			test_requester_fini(&others.requester[j]);
		}
		ck_assert_int_eq(task.waker.wakes, 0);
	}
}

TEST(a_task_dropped_with_questions_open_refuses_them)
{
	for (int polls = 0; polls < 2; polls++) {
		struct test_task task = { .leaf = { .name = 'a', .pending = 9 } };
		struct test_requester requester[MANY];

		test_task_init(&task, NULL);
		for (int i = 0; i < polls; i++)
			test_task_poll(&task);
		ask_many(requester, task.handle);
		test_task_fini(&task);
		for (int i = 0; i < MANY; i++) {
			ck_assert(test_answered(&requester[i]));
			ck_assert_int_eq(requester[i].error, -ESRCH);
			test_requester_fini(&requester[i]);
		}
	}
}

CASE(errors)

TEST(arguments_that_make_no_sense_are_einval)
{
	struct tdt_backtrace_options options = { .size = sizeof(options), .timeout_ns = -1 };
	struct tdt_future requester;
	struct tdt_trace *trace;
	TEST_TASK(task, NULL, .name = 'a');

	errno = 0;
	expect_no_trace(tdt_backtrace(NULL), EINVAL);
	expect_no_trace(backtrace_timed(NULL, 1), EINVAL);
	expect_no_trace(backtrace_timed(task.handle, -1), EINVAL);
	expect_no_trace(tdt_backtrace_with(NULL, NULL), EINVAL);
	expect_no_trace(tdt_backtrace_with(task.handle, &options), EINVAL);
	for (options.size = 0; options.size < sizeof(size_t); options.size++)
		expect_no_trace(tdt_backtrace_with(task.handle, &options), EINVAL);
	requester = tdt_backtrace_async(NULL, NULL, &trace, NULL);
	ck_assert(tdt_future_is_none(&requester) && errno == EINVAL);
	errno = 0;
	requester = tdt_backtrace_async(task.handle, NULL, NULL, NULL);
	ck_assert(tdt_future_is_none(&requester) && errno == EINVAL);
	ck_assert_int_eq(listed(task.handle), 0);
}

TEST(options_of_a_newer_library_are_e2big)
{
	struct {
		struct tdt_backtrace_options options;
		char more[8]; /* no padding, which could be anything */
	} large = { .options = { .size = sizeof(large), .timeout_ns = 1 } };
	TEST_TASK(task, NULL, .name = 'a');

	errno = 0;
	expect_no_trace(tdt_backtrace_with(task.handle, &large.options), ETIMEDOUT);
	large.more[7] = 1;
	expect_no_trace(tdt_backtrace_with(task.handle, &large.options), E2BIG);
}

TEST(who_gives_up_leaves_nothing_behind)
{
	struct tdt_backtrace_options options = { .size = sizeof(options), .timeout_ns = 1 };
	TEST_TASK(task, NULL, .name = 'a', .pending = 9999);

	test_task_poll(&task);
	errno = 0;
	for (int i = 0; i < 100; i++) {
		expect_no_trace(backtrace_timed(task.handle, 0), ETIMEDOUT);
		expect_no_trace(tdt_backtrace_with(task.handle, &options), ETIMEDOUT);
		ck_assert_int_eq(listed(task.handle), 0);
	}
	ck_assert_int_eq(task.waker.wakes, 1);
	/* The poll that was on its way captures nothing: the leaf sees the runtime's waker. */
	tdt_waker_drop(task.leaf.waker);
	task.leaf.waker = NULL;
	ck_assert_int_eq(test_task_run(&task), 1);
	ck_assert_ptr_eq(task.leaf.waker, &task.waker.waker);
	ck_assert_int_eq(task.waker.wakes, 0);
}

TEST(a_task_nobody_polls_times_out)
{
	TEST_TASK(task, NULL, .name = 'a');

	errno = 0;
	expect_no_trace(tdt_backtrace(task.handle), ETIMEDOUT);
	ck_assert_int_eq(listed(task.handle), 0);
}

static void *ask_for_ever(void *argument)
{
	return backtrace_timed(argument, INT64_MAX);
}

TEST(the_longest_timeout_is_no_overflow)
{
	pthread_t thread;
	void *trace;
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	ck_assert_int_eq(pthread_create(&thread, NULL, ask_for_ever, task.handle), 0);
	while (listed(task.handle) == 0)
		sched_yield();
	test_task_poll(&task);
	pthread_join(thread, &trace);
	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
}

struct two {
	struct tdt_handle *own, *other;
};

static void ask_in_poll(void *argument)
{
	const struct two *two = argument;
	const struct tdt_backtrace_options options = { .size = sizeof(options),
						       .timeout_ns = 1,
						       .flags = TDT_BACKTRACE_ON_WORKER };

	errno = 0;
	expect_no_trace(tdt_backtrace(two->own), EDEADLK);
	expect_no_trace(backtrace_timed(two->own, 0), EDEADLK);
	expect_no_trace(tdt_backtrace_with(two->own, NULL), EDEADLK);
	expect_no_trace(tdt_backtrace(two->other), EDEADLK);
	expect_no_trace(backtrace_timed(two->other, 0), ETIMEDOUT);
	expect_no_trace(tdt_backtrace_with(two->other, &options), ETIMEDOUT);
}

TEST(asking_inside_a_poll_is_refused_where_it_could_never_be_answered)
{
	struct test_task task = { 0 }, outer = { 0 }, other = { .leaf = { .name = 'a' } };
	struct two two;
	struct test_busy busy = { ask_in_poll, &two, TDT_PENDING, 0 };
	struct tdt_future child = test_busy_future(&busy);

	test_task_init(&other, NULL);
	test_task_init(&task, &child);
	test_task_init(&outer, &task.future);
	two = (struct two){ task.handle, other.handle };
	test_task_poll(&outer);
	two.own = outer.handle;
	test_task_poll(&outer);
	ck_assert_int_eq(busy.polls, 2);
	test_task_fini(&other);
	tdt_handle_unref(task.handle);
	test_task_fini(&outer);
}

TEST(a_worker_that_runs_tasks_may_ask_only_with_a_limit)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	TEST_TASK(other, NULL, .name = 'b');

	tdt_worker_thread_start(NULL);
	test_task_poll(&task);
	errno = 0;
	expect_no_trace(tdt_backtrace(task.handle), EDEADLK);
	expect_no_trace(tdt_backtrace(other.handle), EDEADLK);
	expect_no_trace(backtrace_timed(task.handle, 0), ETIMEDOUT);
	tdt_worker_thread_stop();
	expect_no_trace(tdt_backtrace(task.handle), ETIMEDOUT);
}

/*
 * Some runtimes call the hook of a worker's start on threads for blocking calls, too.  Such a
 * thread may even have polled a task, which has ended by now.
 */
TEST(a_thread_that_is_reported_as_a_worker_and_runs_no_tasks_may_ask)
{
	struct test_task ended = { .leaf = { .name = 'a' } }, task = { .leaf = { .name = 'b' } };

	test_task_init(&ended, NULL);
	test_task_init(&task, NULL);
	tdt_worker_thread_start(NULL);
	expect_no_trace(tdt_backtrace(task.handle), ETIMEDOUT);
	test_task_poll(&ended);
	expect_no_trace(tdt_backtrace(task.handle), ETIMEDOUT);
	test_task_fini(&ended);
	expect_no_trace(tdt_backtrace(task.handle), ETIMEDOUT);
	tdt_worker_thread_stop();
	test_task_fini(&task);
}
