// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/join.  Awaiting the end of a task: however the task ends, whichever
 * future awaits it, and with threads at random, from a seed that is printed (TDT_TEST_SEED sets
 * it).
 */

#include "lib/bell.h"
#include "lib/requester.h"
#include "lib/test.h"

#define JOINERS 3

static struct test_task task;
static struct test_waker waker, other;
static struct tdt_context cx = { &waker.waker }, other_cx = { &other.waker };
static int outcome;

static void setup(void)
{
	test_waker_init(&waker);
	test_waker_init(&other);
	task = (struct test_task){ .leaf = { .name = 't', .pending = 1 } };
	test_task_init(&task, NULL);
	outcome = 99;
}

static void teardown(void)
{
	test_task_fini(&task);
	ck_assert_int_eq(waker.alive, 0);
	ck_assert_int_eq(other.alive, 0);
}

static tdt_poll_t poll_once(const struct tdt_future *future)
{
	return tdt_future_poll(future, &cx);
}

static struct tdt_future join(int *to)
{
	struct tdt_future future = tdt_join(task.handle, to);

	ck_assert(!tdt_future_is_none(&future));
	return future;
}

/* One that waits. */
static struct tdt_future joining(int *to)
{
	struct tdt_future future = join(to);

	ck_assert_uint_eq(poll_once(&future), TDT_PENDING);
	return future;
}

/* --- How a task ends ---------------------------------------------------------- */

enum ending { ENDS_READY, ENDS_PANICKED, DROPPED_WAITING, DROPPED_UNPOLLED, ENDINGS };

static const int told[ENDINGS] = { 0, -ENOTRECOVERABLE, -ECANCELED, -ECANCELED };

static void end_task(enum ending ending)
{
	if (ending != DROPPED_UNPOLLED)
		ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
	if (ending >= DROPPED_WAITING) {
		tdt_future_drop(&task.future);
		return;
	}
	task.leaf.result = ending == ENDS_READY ? TDT_READY : TDT_PANICKED;
	ck_assert_uint_eq(test_task_poll(&task), task.leaf.result);
}

CASE(endings, .setup = setup, .teardown = teardown)

TEST(who_awaits_is_woken_and_told_how_it_ended, .to = ENDINGS)
{
	FUTURE(waits, joining(&outcome));

	end_task(_i);
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_int_eq(outcome, 99); /* written by no one but the poll */
	ck_assert_uint_eq(poll_once(&waits), TDT_READY);
	ck_assert_int_eq(outcome, told[_i]);
	ck_assert_uint_eq(poll_once(&waits), TDT_PANICKED);
}

TEST(a_task_that_has_ended_already_is_not_waited_for, .to = ENDINGS)
{
	end_task(_i);
	FUTURE(late, join(&outcome));
	ck_assert_uint_eq(poll_once(&late), TDT_READY);
	ck_assert_int_eq(outcome, told[_i]);
	ck_assert_int_eq(waker.clones, 0);
}

TEST(a_task_that_ended_tells_so_when_it_is_dropped_too, .to = DROPPED_WAITING)
{
	struct tdt_future late;

	end_task(_i);
	tdt_future_drop(&task.future);
	late = join(&outcome);
	ck_assert_uint_eq(poll_once(&late), TDT_READY);
	ck_assert_int_eq(outcome, told[_i]);
	tdt_future_drop(&late);
}

TEST(a_task_that_waits_has_not_ended)
{
	FUTURE(waits, joining(&outcome));

	task.leaf.pending = 2;
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(test_task_poll(&task), TDT_PENDING);
		ck_assert_uint_eq(poll_once(&waits), TDT_PENDING);
	}
	ck_assert_int_eq(waker.wakes, 0);
	ck_assert_uint_eq(test_task_poll(&task), TDT_READY);
	ck_assert_int_eq(waker.wakes, 1);
}

CASE(joiners, .setup = setup, .teardown = teardown)

TEST(several_are_woken_but_for_one_that_was_dropped, .to = JOINERS + 1)
{
	/* _i: which; JOINERS: none */
	struct tdt_future waits[JOINERS];
	int outcomes[JOINERS];

	for (int i = 0; i < JOINERS; i++)
		waits[i] = joining(&outcomes[i]);
	if (_i < JOINERS)
		tdt_future_drop(&waits[_i]);
	end_task(ENDS_READY);
	ck_assert_int_eq(waker.wakes, _i < JOINERS ? JOINERS - 1 : JOINERS);
	for (int i = 0; i < JOINERS; i++) {
		if (i == _i)
			continue;
		ck_assert_uint_eq(poll_once(&waits[i]), TDT_READY);
		ck_assert_int_eq(outcomes[i], 0);
		tdt_future_drop(&waits[i]);
	}
}

TEST(one_may_be_dropped_at_any_time)
{
	struct tdt_future unpolled = join(&outcome), waits = joining(&outcome),
			  woken = joining(&outcome);

	tdt_future_drop(&unpolled);
	tdt_future_drop(&waits);
	ck_assert_int_eq(waker.alive, 1);
	end_task(ENDS_READY);
	tdt_future_drop(&woken);
	ck_assert_int_eq(outcome, 99);
}

TEST(only_the_record_is_kept_and_without_the_caller_s_handle)
{
	struct tdt_future waits = joining(&outcome);

	tdt_handle_unref(task.handle);
	task.handle = NULL;
	tdt_future_drop(&task.future);
	ck_assert_int_eq(task.leaf.drops, 1);
	ck_assert_uint_eq(poll_once(&waits), TDT_READY);
	ck_assert_int_eq(outcome, -ECANCELED);
	tdt_future_drop(&waits);
}

TEST(spurious_polls_leave_one_clone)
{
	FUTURE(waits, joining(NULL));

	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(poll_once(&waits), TDT_PENDING);
	ck_assert_int_eq(waker.alive, 1);
	end_task(ENDS_READY);
	ck_assert_int_eq(waker.wakes, 1);
	ck_assert_uint_eq(poll_once(&waits), TDT_READY);
}

TEST(the_waker_of_the_last_poll_is_woken)
{
	FUTURE(waits, joining(&outcome));

	ck_assert_uint_eq(tdt_future_poll(&waits, &other_cx), TDT_PENDING);
	ck_assert_int_eq(waker.alive, 0);
	end_task(ENDS_READY);
	ck_assert_int_eq(waker.wakes, 0);
	ck_assert_int_eq(other.wakes, 1);
}

TEST(who_cannot_be_woken_tries_again)
{
	FUTURE(waits, join(&outcome));

	waker.fail_clone = true;
	ck_assert_uint_eq(poll_once(&waits), TDT_PENDING);
	ck_assert_int_eq(waker.wakes, 1);
	waker.fail_clone = false;
	ck_assert_uint_eq(poll_once(&waits), TDT_PENDING);
	end_task(ENDS_READY);
	ck_assert_int_eq(waker.wakes, 2);
	ck_assert_uint_eq(poll_once(&waits), TDT_READY);
}

static void drop_task(void)
{
	tdt_future_drop(&task.future);
}

/*
 * When the clone is made, the poll has found that the task lives, and there is nobody to wake yet.
 */
TEST(an_end_in_the_middle_of_a_poll_is_not_lost)
{
	FUTURE(waits, join(&outcome));

	waker.in_clone = drop_task;
	ck_assert_uint_eq(poll_once(&waits), TDT_READY);
	ck_assert_int_eq(outcome, -ECANCELED);
}

/* A task that awaits itself, and is dropped one day. */
static struct tdt_future own_end;

static tdt_poll_t poll_own_end(void *state, struct tdt_context *own_cx)
{
	if (tdt_future_is_none(&own_end))
		own_end = tdt_join(*(struct tdt_handle **)state, &outcome);
	return tdt_future_poll(&own_end, own_cx);
}

static void drop_own_end(void *state)
{
	tdt_future_drop(&own_end);
}

TEST(a_task_that_awaits_itself_waits)
{
	struct tdt_handle *handle;
	struct tdt_traced self =
	    tdt_traced((struct tdt_future){ &handle, poll_own_end, drop_own_end });

	handle = self.handle;
	ck_assert_uint_eq(poll_once(&self.future), TDT_PENDING);
	ck_assert_uint_eq(poll_once(&self.future), TDT_PENDING);
	tdt_future_drop(&self.future);
	tdt_handle_unref(handle);
	ck_assert_int_eq(outcome, 99);
}

TEST(there_is_no_end_of_nothing)
{
	struct tdt_future none;

	errno = 0;
	none = tdt_join(NULL, &outcome);
	ck_assert(tdt_future_is_none(&none));
	ck_assert_int_eq(errno, EINVAL);
}

/* Joiners of a runtime that polls inside its wake, and drops all others then. */
static struct eager {
	struct tdt_waker waker;
	struct tdt_future waits;
} eager[JOINERS];

static const struct tdt_waker *eager_clone(const struct tdt_waker *eager_waker)
{
	struct tdt_future another = joining(NULL);

	tdt_future_drop(&another);
	return eager_waker;
}

static void eager_wake(const struct tdt_waker *eager_waker)
{
	struct eager *woken = (struct eager *)(uintptr_t)eager_waker;
	struct tdt_context eager_cx = { eager_waker };

	if (tdt_future_poll(&woken->waits, &eager_cx) == TDT_READY)
		for (int i = 0; i < JOINERS; i++)
			tdt_future_drop(&eager[i].waits);
}

static void eager_drop(const struct tdt_waker *eager_waker)
{
	FUTURE(another, join(NULL));

	poll_once(&another);
}

/* Else this hangs. */
TEST(wakers_are_called_with_nothing_locked)
{
	static const struct tdt_waker_vtable vtable = { eager_clone, eager_wake, eager_wake,
							eager_drop };

	for (int i = 0; i < JOINERS; i++) {
		eager[i] = (struct eager){ { &vtable }, join(NULL) };
		eager_wake(&eager[i].waker);
	}
	end_task(ENDS_READY);
	for (int i = 0; i < JOINERS; i++)
		ck_assert(tdt_future_is_none(&eager[i].waits));
}

static int join_once(void *argument)
{
	struct tdt_future one = tdt_join(task.handle, NULL);
	int result = tdt_future_is_none(&one) ? -errno : 0;

	tdt_future_drop(&one);
	return result;
}

TEST(a_lack_of_memory_is_told)
{
	no_memory_each(join_once, NULL, 1);
}

static unsigned seed;
static __thread unsigned choices;

static bool one_in(unsigned n)
{
	return random_below(&choices, n) == 0;
}

/* Of the task of a round.  What its poll writes is no atomic: its end is to make it visible. */
static struct tdt_traced traced;
static int written;
static pthread_barrier_t start, end;
static bool over; /* there is no such round: known at its start */

static tdt_poll_t end_soon(void *state, struct tdt_context *own_cx)
{
	if (!one_in(3)) {
		tdt_waker_wake_by_ref(own_cx->waker);
		return TDT_PENDING;
	}
	written++;
	return one_in(4) ? TDT_PANICKED : TDT_READY;
}

/* Poll the task until it ends, or drop it before. */
static void run_task(void)
{
	struct bell *bell = bell_new();
	struct tdt_context here = { &bell->waker };

	while (!one_in(8) && tdt_future_poll(&traced.future, &here) == TDT_PENDING)
		sched_yield();
	tdt_future_drop(&traced.future);
	tdt_waker_drop(&bell->waker);
}

static atomic_long ended, given_up;

static void await_or_not(void)
{
	struct bell *bell[2] = { bell_new(), bell_new() };
	int how = 99;
	struct tdt_future waits = tdt_join(traced.handle, &how);
	bool patient = !one_in(4);

	MUST(!tdt_future_is_none(&waits));
	for (;;) {
		int now = one_in(2);
		struct tdt_context here = { &bell[now]->waker };

		if (tdt_future_poll(&waits, &here) == TDT_READY) {
			MUST(how == -ECANCELED || written == 1);
			MUST(how == 0 || how == -ECANCELED || how == -ENOTRECOVERABLE);
			atomic_fetch_add(&ended, 1);
			break;
		}
		if (!patient && one_in(2)) {
			atomic_fetch_add(&given_up, 1);
			break;
		}
		if (one_in(4))
			sched_yield();
		else
			bell_wait(bell[now]);
	}
	tdt_future_drop(&waits);
	tdt_waker_drop(&bell[0]->waker);
	tdt_waker_drop(&bell[1]->waker);
}

static void *await_each(void *number)
{
	choices = seed + 7919 * (unsigned)(uintptr_t)number;
	for (;;) {
		pthread_barrier_wait(&start);
		if (over)
			return NULL;
		await_or_not();
		pthread_barrier_wait(&end);
	}
}

CASE(threads)

TEST(whoever_awaits_is_told_whatever_the_other_threads_do)
{
	pthread_t thread[JOINERS];
	int rounds, least = (int)times_here(3000);

	seed = seed_of_run();
	choices = seed;
	pthread_barrier_init(&start, NULL, JOINERS + 1);
	pthread_barrier_init(&end, NULL, JOINERS + 1);
	for (uintptr_t i = 0; i < JOINERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, await_each, (void *)(i + 1)), 0);
	/* And on until somebody gave up: whoever comes when the task has ended never does. */
	for (rounds = 0; rounds < least || given_up == 0; rounds++) {
		traced = tdt_traced((struct tdt_future){ NULL, end_soon, drop_nothing });
		ck_assert_ptr_nonnull(traced.handle);
		written = 0;
		pthread_barrier_wait(&start);
		run_task();
		pthread_barrier_wait(&end);
		tdt_handle_unref(traced.handle);
	}
	over = true;
	pthread_barrier_wait(&start);
	threads_join(thread, JOINERS);
	pthread_barrier_destroy(&start);
	pthread_barrier_destroy(&end);
	printf("# %ld were told, %ld gave up\n", ended, given_up);
	fflush(stdout);
	ck_assert_int_eq(ended + given_up, JOINERS * rounds);
	ck_assert_int_gt(given_up, 0);
	ck_assert_int_eq(bells, 0);
}
