// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/wrapper.  Polls end by unwinding, though they must not: by a C++ exception, or
 * because their thread is cancelled or exits.  The task has then panicked, its requester is
 * answered, and the thread is in no poll any more.
 */

#include <tdt/integrate/hooks.h>

#include "lib/options.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "lib/unwinding.h"
#include "registry/handle.h"
#include "task/handshake.h"

static const struct tdt_future throwing = { NULL, test_throwing_poll, drop_nothing };

CASE(exceptions)

TEST(an_exception_ends_the_task_as_panicked_and_goes_on)
{
	TEST_TASK(task, &throwing);

	ck_assert(test_throws(&task.future, &task.cx));
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
	ck_assert_ptr_fails(tdt_backtrace(task.handle), ESRCH);
}

TEST(who_awaits_the_end_is_told_of_a_panic)
{
	struct test_waker waker;
	struct tdt_context cx = { &waker.waker };
	int outcome = 99;

	test_waker_init(&waker);
	TEST_TASK(task, &throwing);
	FUTURE(waits, tdt_join(task.handle, &outcome));
	ck_assert_int_eq(tdt_future_poll(&waits, &cx), TDT_PENDING);
	ck_assert(test_throws(&task.future, &task.cx));
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_int_eq(tdt_future_poll(&waits, &cx), TDT_READY);
	ck_assert_int_eq(outcome, -ENOTRECOVERABLE);
}

TEST(who_asked_a_poll_that_throws_is_told_what_it_had_captured)
{
	struct test_requester requester[2];
	TEST_TASK(task, &throwing);

	for (int i = 0; i < 2; i++)
		test_ask(&requester[i], task.handle);
	ck_assert(test_throws(&task.future, &task.cx));
	for (int i = 0; i < 2; i++) {
		const struct tdt_task_info *info = test_answer(&requester[i]);

		ck_assert_int_eq(info->state, TDT_TASK_PANICKED);
		ck_assert_uint_eq(info->leaves, 1);
		ck_assert_int_eq(test_nodes_of(requester[i].trace, "test_throwing_poll"), 1);
		test_requester_fini(&requester[i]);
	}
}

/* Polls another future, survives its exceptions, and notes whose poll it is in then. */
struct surviving {
	const struct tdt_future *child;
	uint64_t current;
};

static tdt_poll_t survive(void *state, struct tdt_context *cx)
{
	struct surviving *surviving = state;

	if (!test_throws(surviving->child, cx))
		return TDT_READY;
	surviving->current = tdt_current_task_id();
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

TEST(an_exception_ends_only_the_tasks_that_it_passes)
{
	struct test_task inner = { 0 }, outer = { 0 };
	struct surviving surviving = { &inner.future, 0 };
	struct test_requester ask_inner, ask_outer;

	test_task_init(&inner, &throwing);
	test_task_init(&outer, &(struct tdt_future){ &surviving, survive, drop_nothing });
	test_ask(&ask_inner, inner.handle);
	test_ask(&ask_outer, outer.handle);
	ck_assert_int_eq(test_task_poll(&outer), TDT_PENDING);
	ck_assert_uint_eq(surviving.current, tdt_handle_id(outer.handle));
	ck_assert_int_eq(test_answer(&ask_inner)->state, TDT_TASK_PANICKED);
	ck_assert_int_eq(test_answer(&ask_outer)->state, TDT_TASK_WAITING);
	ck_assert_uint_eq(tdt_trace_info(ask_outer.trace)->leaves, 2);
	ck_assert_int_ge(test_nodes_of(ask_outer.trace, "survive"), 1);
	ck_assert_int_eq(test_nodes_of(ask_outer.trace, "test_throwing_poll"), 1);
	test_requester_fini(&ask_inner);
	test_requester_fini(&ask_outer);
	ck_assert_int_eq(test_task_poll(&outer), TDT_READY);
	test_task_fini(&inner);
	test_task_fini(&outer);
}

TEST(a_waker_whose_clone_throws_ends_the_task_too)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9, .yield = true);
	struct tdt_waker_vtable vtable = *task.waker.waker.vtable;

	vtable.clone = test_throwing_clone;
	task.waker.waker.vtable = &vtable;
	ASKED(requester, task.handle);
	ck_assert(test_throws(&task.future, &task.cx));
	ck_assert_int_eq(test_answer(&requester)->state, TDT_TASK_PANICKED);
	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
	ck_assert_int_eq(task.leaf.polls, 1);
}

/* What is noted of a wake-up after all. */
static void expect_noted_wake(struct test_task *task)
{
	ck_assert_uint_eq(task->handle->record.woken, 0);
	tdt_task_woken(task->handle);
	ck_assert_uint_ne(task->handle->record.woken, 0);
}

TEST(after_a_waker_threw_at_who_asks_wake_ups_are_noted)
{
	struct tdt_waker_vtable vtable; /* lives longer than the task */
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	vtable = *task.waker.waker.vtable;
	vtable.wake = test_throwing_wake;
	task.waker.waker.vtable = &vtable;
	ck_assert_int_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert(test_requester_throws(task.handle));
	expect_noted_wake(&task);
	task.waker.alive--; /* the one that threw was not dropped */
}

static struct test_requester asked_in_poll;

static void ask_in_poll(void *task)
{
	test_ask(&asked_in_poll, ((struct test_task *)task)->handle);
}

TEST(after_a_waker_threw_at_a_poll_wake_ups_are_noted)
{
	struct test_busy busy = { .act = ask_in_poll, .result = TDT_PENDING };
	const struct tdt_future future = test_busy_future(&busy);
	struct test_task task = { 0 };
	struct tdt_waker_vtable vtable;

	busy.argument = &task;
	test_task_init(&task, &future);
	vtable = *task.waker.waker.vtable;
	vtable.wake_by_ref = test_throwing_wake;
	task.waker.waker.vtable = &vtable;
	ck_assert(test_throws(&task.future, &task.cx));
	expect_noted_wake(&task);
	ck_assert(test_answered(&asked_in_poll));
	test_requester_fini(&asked_in_poll);
	test_task_fini(&task);
}

/* --- Threads that end in a poll ------------------------------------------------ */

static sem_t polled;
static pthread_key_t late; /* its destructor runs when the thread's stack is unwound */
static uint64_t current_late = UINT64_MAX;

static void note_late(void *value)
{
	current_late = tdt_current_task_id();
}

static tdt_poll_t exit_in_poll(void *state, struct tdt_context *cx)
{
	pthread_exit(NULL);
}

static tdt_poll_t block_in_poll(void *state, struct tdt_context *cx)
{
	sem_post(&polled);
	/*
	 * Not pause(): ThreadSanitizer loses count of locks in a thread that is cancelled in a call
	 * it intercepts.
	 */
	while (state == NULL) {
		pthread_testcancel();
		sched_yield();
	}
	return TDT_READY;
}

static void *poll_on_thread(void *argument)
{
	pthread_setspecific(late, argument);
	test_task_poll(argument);
	return argument;
}

static void end_thread_in_poll(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), bool cancel)
{
	struct test_requester requester, during;
	pthread_t thread;
	void *result;
	TEST_TASK(task, (&(struct tdt_future){ NULL, poll, drop_nothing }));

	test_ask(&requester, task.handle);
	ck_assert_int_eq(pthread_create(&thread, NULL, poll_on_thread, &task), 0);
	if (cancel) {
		sem_wait(&polled);
		test_ask(&during, task.handle);
		pthread_cancel(thread);
	}
	pthread_join(thread, &result);
	ck_assert_ptr_ne(result, &task);
	ck_assert_uint_eq(current_late, 0);
	ck_assert_int_eq(test_answer(&requester)->state, TDT_TASK_PANICKED);
	test_requester_fini(&requester);
	if (cancel) {
		ck_assert(test_answered(&during));
		ck_assert_int_eq(during.error, -ESRCH);
		test_requester_fini(&during);
	}
	ck_assert_int_eq(test_task_poll(&task), TDT_PANICKED);
}

CASE(threads)

TEST(a_thread_that_exits_in_a_poll_ends_the_task)
{
	pthread_key_create(&late, note_late);
	end_thread_in_poll(exit_in_poll, false);
}

TEST(a_thread_that_is_cancelled_in_a_poll_ends_the_task)
{
	pthread_key_create(&late, note_late);
	sem_init(&polled, 0, 0);
	end_thread_in_poll(block_in_poll, true);
}

static void *ask_on_thread(void *argument)
{
	return backtrace_timed(argument, INT64_MAX);
}

static bool is_asked(const struct tdt_handle *handle)
{
	return (TDT__PEEK(handle->record.own_request) & TDT__REQUESTED) != 0;
}

TEST(a_requester_that_is_cancelled_withdraws_its_request)
{
	pthread_t thread;
	void *result;
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	ck_assert_int_eq(pthread_create(&thread, NULL, ask_on_thread, task.handle), 0);
	while (!is_asked(task.handle))
		usleep(100);
	usleep(1000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	ck_assert(!is_asked(task.handle));
}
