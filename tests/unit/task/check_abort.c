// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/abort.  Aborting a task: at its next turn, whatever it does; what its joiners, its
 * record, a request and the recording say; and on a runtime with threads.
 */

#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>

#include "facts/record.h"
#include "lib/recorded.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "registry/handle.h"
#include "task/request.h"

static struct test_task task;
static struct test_waker waker;
static struct tdt_context cx = { &waker.waker };

static void setup(void)
{
	test_waker_init(&waker);
	test_events_clear();
	task = (struct test_task){ .leaf = { .name = 't', .pending = 9 } };
	test_task_init(&task, NULL);
}

static void teardown(void)
{
	test_task_fini(&task);
	ck_assert_int_eq(task.leaf.drops, 1);
	ck_assert_int_eq(waker.alive, 0);
}

/* The poll in which the task is dropped. */
static void expect_dropped(void)
{
	errno = 0;
	ck_assert_uint_eq(test_task_poll(&task), TDT_PANICKED);
	ck_assert_int_eq(errno, ECANCELED);
	ck_assert_int_eq(task.leaf.drops, 1);
	ck_assert_int_eq(task.waker.alive, 0);
	ck_assert_int_eq(tdt_task_abort(task.handle), -ESRCH);
}

CASE(abort_, .setup = setup, .teardown = teardown)

TEST(a_task_that_waits_is_woken_and_dropped)
{
	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	ck_assert_int_eq(task.waker.wakes, 1);
	ck_assert_int_eq(task.leaf.drops, 0);
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	ck_assert_int_eq(task.waker.wakes, 1);
	expect_dropped();
	ck_assert_int_eq(task.leaf.polls, 1);
	ck_assert_str_eq(test_events, "t. t~ ");
}

TEST(a_task_that_was_never_polled_is_not)
{
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	expect_dropped();
	ck_assert_int_eq(task.leaf.polls, 0);
}

TEST(an_aborted_task_may_be_dropped_before_its_turn)
{
	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	tdt_future_drop(&task.future);
	ck_assert_int_eq(task.leaf.drops, 1);
}

TEST(a_task_that_has_ended_cannot_be_aborted)
{
	task.leaf.pending = 0;
	ck_assert_uint_eq(test_task_poll(&task), TDT_READY);
	ck_assert_fails(tdt_task_abort(task.handle), ESRCH);
}

TEST(joiners_are_told_after_the_drop)
{
	int outcome = 99;
	FUTURE(join, tdt_join(task.handle, &outcome));

	ck_assert_uint_eq(tdt_future_poll(&join, &cx), TDT_PENDING);
	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	ck_assert_int_eq(waker.wakes, 0);
	expect_dropped();
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_uint_eq(tdt_future_poll(&join, &cx), TDT_READY);
	ck_assert_int_eq(outcome, -ECANCELED);
}

/* 0: the request comes first, 1: the abort does */
TEST(a_request_of_an_aborted_task_finds_nobody, .to = 2)
{
	struct test_requester requester;

	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	if (_i == 0)
		test_ask(&requester, task.handle);
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	if (_i == 1)
		test_ask(&requester, task.handle);
	ck_assert_int_eq(task.waker.wakes, 1);
	expect_dropped();
	ck_assert(test_answered(&requester));
	ck_assert_int_eq(requester.error, -ESRCH);
	test_requester_fini(&requester);
}

TEST(a_request_that_is_withdrawn_takes_no_abort_along)
{
	struct test_requester requester;

	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	test_ask(&requester, task.handle);
	test_requester_fini(&requester);
	expect_dropped();
}

/* As in a poll that began before the abort, and took the requests after it. */
TEST(a_poll_that_takes_requests_leaves_the_abort_to_be_claimed)
{
	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	ASKED(requester, task.handle);
	ck_assert_int_eq(task.waker.wakes, 1);
	ck_assert(!tdt__requests_claim(task.handle));
	ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	tdt__requests_answer(task.handle, tdt__requests_take(task.handle, NULL), NULL, -ESRCH);
	ck_assert(tdt__requests_claim(task.handle));
	expect_dropped();
	ck_assert(test_answered(&requester));
}

/* --- In a poll ----------------------------------------------------------------------- */

static void abort_itself(void *argument)
{
	ck_assert_int_eq(tdt_task_abort(*(struct tdt_handle **)argument), 0);
}

CASE(in_a_poll)

/* 0: it goes on waiting, 1: the poll ends it */
TEST(the_poll_goes_on, .to = 2)
{
	struct test_task own = { .leaf = { .name = 'x' } };
	struct test_busy busy = { .act = abort_itself,
				  .argument = &own.handle,
				  .result = _i == 0 ? TDT_PENDING : TDT_READY };
	struct tdt_future child = test_busy_future(&busy);

	test_task_init(&own, &child);
	ck_assert_uint_eq(test_task_poll(&own), _i == 0 ? TDT_PENDING : TDT_READY);
	ck_assert_int_eq(own.waker.wakes, _i == 0);
	if (_i == 0)
		ck_assert_uint_eq(test_task_poll(&own), TDT_PANICKED);
	ck_assert_int_eq(busy.polls, 1);
	test_task_fini(&own);
}

TEST(a_task_that_its_poll_ends_is_not_said_to_be_aborted)
{
	struct test_task own = { .leaf = { .name = 'x' } };
	struct test_busy busy = { .act = abort_itself,
				  .argument = &own.handle,
				  .result = TDT_READY };
	struct tdt_future child = test_busy_future(&busy);
	const struct tdt_task_info *info;

	test_task_init(&own, &child);
	ASKED(requester, own.handle);
	ck_assert_uint_eq(test_task_poll(&own), TDT_READY);
	info = test_answer(&requester);
	ck_assert_uint_eq(info->state, TDT_TASK_READY);
	ck_assert_uint_eq(info->aborted, 0);
	test_task_fini(&own);
}

static void abort_and_ask_in_vain(void *argument)
{
	abort_itself(argument);
	ASKED(requester, *(struct tdt_handle **)argument);
}

TEST(a_request_that_comes_and_goes_in_the_poll_takes_no_abort_along)
{
	struct test_task own = { .leaf = { .name = 'x' } };
	struct test_busy busy = { .act = abort_and_ask_in_vain,
				  .argument = &own.handle,
				  .result = TDT_PENDING };
	struct tdt_future child = test_busy_future(&busy);

	test_task_init(&own, &child);
	ck_assert_uint_eq(test_task_poll(&own), TDT_PENDING);
	ck_assert_int_eq(own.waker.wakes, 1);
	ck_assert_uint_eq(test_task_poll(&own), TDT_PANICKED);
	test_task_fini(&own);
}

static uint64_t dropped_as;

static void note_current(void *state)
{
	dropped_as = tdt_current_task_id();
}

static tdt_poll_t never(void *state, struct tdt_context *context)
{
	(void)state, (void)context;
	return TDT_PENDING;
}

TEST(the_drop_is_of_the_task)
{
	struct tdt_future child = { &dropped_as, never, note_current };
	TEST_TASK(own, &child);

	ck_assert_int_eq(tdt_task_abort(own.handle), 0);
	ck_assert_uint_eq(test_task_poll(&own), TDT_PANICKED);
	ck_assert_uint_eq(dropped_as, tdt_handle_id(own.handle));
}

TEST(without_a_future_there_is_nothing_to_drop)
{
	FUTURELESS(other, tdt_task_new(NULL));

	ck_assert_fails(tdt_task_abort(NULL), EINVAL);
	ck_assert_int_eq(tdt_task_abort(other), -EINVAL);
}

TEST(a_future_that_its_owner_drops_cannot_be_aborted)
{
	struct test_future leaf = { .name = 'o', .pending = 1 };
	struct tdt_future future = test_future(&leaf);
	struct tdt_traced traced;

	test_waker_init(&waker);
	future.drop = NULL;
	traced = tdt_traced(future);
	ck_assert_ptr_nonnull(traced.handle);
	ck_assert_uint_eq(tdt_future_poll(&traced.future, &cx), TDT_PENDING);
	ck_assert_int_eq(tdt_task_abort(traced.handle), -EOPNOTSUPP);
	ck_assert_uint_eq(tdt_future_poll(&traced.future, &cx), TDT_READY);
	tdt_future_drop(&traced.future);
	ck_assert_int_eq(leaf.drops, 0);
	tdt_handle_unref(traced.handle);
	test_future(&leaf).drop(&leaf);
}

/* --- What is said of it -------------------------------------------------------------- */

static struct tdt_task_info seen;

static int see(struct tdt_handle *handle, const struct tdt_task_info *info, void *argument)
{
	(void)handle, (void)argument;
	seen = *info;
	return 0;
}

/* Another task aborts the one of the suite in its poll. */
static uint64_t abort_from_a_task(void)
{
	struct test_task other = { 0 };
	struct test_busy busy = { .act = abort_itself, .argument = &task.handle };
	struct tdt_future child = test_busy_future(&busy);
	uint64_t id;

	test_task_init(&other, &child);
	id = tdt_handle_id(other.handle);
	ck_assert_uint_eq(test_task_poll(&other), TDT_READY);
	test_task_fini(&other);
	return id;
}

CASE(said, .setup = setup, .teardown = teardown)

TEST(the_record_names_who_did_it)
{
	uint64_t by;

	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	ck_assert_int_eq(tdt_task_inspect(task.handle, see, NULL), 0);
	ck_assert_uint_eq(seen.aborted, 0);
	by = abort_from_a_task();
	tdt_task_woken(task.handle); /* changes nothing */
	ck_assert_int_eq(tdt_task_inspect(task.handle, see, NULL), 0);
	ck_assert_uint_eq(seen.aborted, 1);
	ck_assert_uint_eq(seen.woken_by, by);
	ck_assert_uint_eq(seen.state, TDT_TASK_RUNNABLE);
	expect_dropped();
	tdt_task_woken(task.handle);
	ck_assert_uint_eq(task.handle->record.woken_by, by);
	ck_assert(tdt__record_aborted(&task.handle->record));
}

/* 0: by a task, 1: by none */
TEST(the_recording_says_so, .to = 2)
{
	struct recorded end;
	uint64_t by = 0;

	ck_assert_int_eq(tdt_recorder_start(NULL), 0);
	ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	if (_i == 0)
		by = abort_from_a_task();
	else
		ck_assert_int_eq(tdt_task_abort(task.handle), 0);
	expect_dropped();
	end = recorded_last(TDT_RING_POLLS, TDT_EVENT_END, tdt_handle_id(task.handle));
	ck_assert_uint_eq(end.event.detail, TDT_PENDING | TDT_EVENT_END_ABORTED);
	ck_assert_uint_eq(end.event.a, by);
	ck_assert_uint_eq(end.event.b, 0);
	ck_assert_int_eq(tdt_recorder_stop(), 0);
}
