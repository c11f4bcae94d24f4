// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers runtime/join_set, runtime/task.  Sets of tasks: waiting for any and
 * for all, however they end; aborting them; giving the set up; and many at once.
 */

#include <tdt/rt/join_set.h>

#include "lib/bell.h"
#include "lib/leaf.h"
#include "lib/requester.h"
#include "lib/rt.h"
#include "lib/test.h"

#define TASKS 4
#define ROUNDS 300

static struct tdt_rt *rt;
static struct tdt_join_set *set;
static struct leaf leaf[TASKS];
static struct bell *bell;

struct joined {
	uint64_t id;
	int outcome;
};

static void setup(void)
{
	rt = rt_of(2);
	set = tdt_join_set_new(rt);
	ck_assert_ptr_nonnull(set);
	bell = bell_new();
	memset(leaf, 0, sizeof leaf);
}

static void teardown(void)
{
	tdt_join_set_free(set);
	tdt_rt_free(rt);
	tdt_waker_drop(&bell->waker);
	ck_assert_int_eq(bells, 0);
}

static void go(int n)
{
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(tdt_join_set_go(set, leaf_future(&leaf[i]), TDT_TASK_ATTR()), 0);
	for (int i = 0; i < n; i++)
		UNTIL(leaf[i].waker != NULL || leaf[i].open);
}

/* Poll on this thread until it is ready. */
static void await(struct tdt_future future)
{
	struct tdt_context cx = { &bell->waker };
	tdt_poll_t result;

	ck_assert(!tdt_future_is_none(&future));
	while ((result = tdt_future_poll(&future, &cx)) == TDT_PENDING)
		bell_wait(bell);
	ck_assert_uint_eq(result, TDT_READY);
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PANICKED);
	tdt_future_drop(&future);
}

static struct joined next(void)
{
	struct joined joined = { .id = 99, .outcome = 99 };

	await(tdt_join_set_next(set, &joined.id, &joined.outcome));
	return joined;
}

CASE(join_set, .setup = setup, .teardown = teardown)

TEST(an_empty_set_is_not_waited_for)
{
	ck_assert_uint_eq(next().id, 0);
	await(tdt_join_set_wait(set));
	await(tdt_join_set_next(set, NULL, NULL));
}

/* 0: ready, 1: panicked, 2: aborted */
TEST(it_says_how_a_task_ended, .to = 3)
{
	static const int outcomes[] = { 0, -ENOTRECOVERABLE, -ECANCELED };
	struct joined joined;

	leaf[0].result = _i == 1 ? TDT_PANICKED : TDT_READY;
	go(1);
	if (_i == 2)
		tdt_join_set_abort(set);
	else
		leaf_open(&leaf[0]);
	joined = next();
	ck_assert_uint_ne(joined.id, 0);
	ck_assert_int_eq(joined.outcome, outcomes[_i]);
	ck_assert_int_eq(leaf[0].drops, 1); /* before it was told */
	ck_assert_uint_eq(next().id, 0);
}

TEST(tasks_come_in_the_order_in_which_they_ended)
{
	uint64_t id[TASKS];

	go(TASKS);
	for (int i = TASKS; i-- > 0;) {
		leaf_open(&leaf[i]);
		id[i] = next().id;
		ck_assert_int_eq(leaf[i].drops, 1);
	}
	for (int i = 1; i < TASKS; i++)
		ck_assert_uint_lt(id[i - 1], id[i]);
}

TEST(all_are_waited_for)
{
	struct tdt_context cx = { &bell->waker };
	struct tdt_future wait;

	go(TASKS);
	wait = tdt_join_set_wait(set);
	for (int i = 0; i < TASKS; i++) {
		ck_assert_uint_eq(tdt_future_poll(&wait, &cx), TDT_PENDING);
		leaf_open(&leaf[i]);
		bell_wait(bell);
	}
	ck_assert_uint_eq(tdt_future_poll(&wait, &cx), TDT_READY);
	tdt_future_drop(&wait);
	for (int i = 0; i < TASKS; i++)
		ck_assert_int_eq(leaf[i].drops, 1);
}

TEST(who_is_dropped_loses_no_task)
{
	struct tdt_context cx = { &bell->waker };
	struct tdt_future first, second;
	struct joined joined = { 0, 0 };

	go(1);
	first = tdt_join_set_next(set, NULL, NULL);
	second = tdt_join_set_next(set, &joined.id, &joined.outcome);
	ck_assert_uint_eq(tdt_future_poll(&first, &cx), TDT_PENDING);
	ck_assert_uint_eq(tdt_future_poll(&second, &cx), TDT_PENDING);
	leaf_open(&leaf[0]);
	bell_wait(bell);
	tdt_future_drop(&first);
	bell_wait(bell);
	ck_assert_uint_eq(tdt_future_poll(&second, &cx), TDT_READY);
	ck_assert_uint_ne(joined.id, 0);
	tdt_future_drop(&second);
}

TEST(the_last_task_lets_all_go_that_wait_for_another)
{
	struct tdt_context cx = { &bell->waker };
	struct tdt_future first, second;
	struct joined joined = { 99, 99 };

	go(1);
	first = tdt_join_set_next(set, NULL, NULL);
	second = tdt_join_set_next(set, &joined.id, &joined.outcome);
	ck_assert_uint_eq(tdt_future_poll(&first, &cx), TDT_PENDING);
	ck_assert_uint_eq(tdt_future_poll(&second, &cx), TDT_PENDING);
	leaf_open(&leaf[0]);
	bell_wait(bell);
	ck_assert_uint_eq(tdt_future_poll(&first, &cx), TDT_READY);
	bell_wait(bell);
	ck_assert_uint_eq(tdt_future_poll(&second, &cx), TDT_READY);
	ck_assert_uint_eq(joined.id, 0);
	tdt_future_drop(&first);
	tdt_future_drop(&second);
}

static struct test_waker waits_for_next[3];
static struct tdt_future next_one[3];

static tdt_poll_t poll_next(int i)
{
	struct tdt_context cx = { &waits_for_next[i].waker };

	return tdt_future_poll(&next_one[i], &cx);
}

static void poll_the_third(void)
{
	ck_assert_uint_eq(poll_next(2), TDT_READY);
}

/* Its future may be freed by then, so it is in no line. */
TEST(who_sees_the_empty_set_before_it_is_woken_is_not_woken)
{
	go(1);
	for (int i = 0; i < 3; i++) {
		test_waker_init(&waits_for_next[i]);
		next_one[i] = tdt_join_set_next(set, NULL, NULL);
		ck_assert_uint_eq(poll_next(i), TDT_PENDING);
	}
	waits_for_next[1].in_wake = poll_the_third;
	leaf_open(&leaf[0]);
	UNTIL(waits_for_next[0].alive == 0); /* woken, and the worker is done with its waker */
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_eq(poll_next(i), TDT_READY);
		ck_assert_int_eq(waits_for_next[1].wakes, 1);
	}
	ck_assert_int_eq(waits_for_next[2].wakes, 0);
	for (int i = 0; i < 3; i++) {
		tdt_future_drop(&next_one[i]);
		ck_assert_int_eq(waits_for_next[i].alive, 0);
	}
}

/* 0: they are waited for; 1: the next one is, which is none */
TEST(tasks_that_end_are_forgotten_if_nobody_asks_how, .to = 2)
{
	struct tdt_context cx = { &bell->waker };
	struct joined joined = { 0, 99 };

	tdt_join_set_forget(set);
	go(2);
	FUTURE(wait, _i == 0 ? tdt_join_set_wait(set)
			     : tdt_join_set_next(set, &joined.id, &joined.outcome));
	leaf_open(&leaf[0]);
	UNTIL(leaf[0].drops == 1);
	ck_assert_uint_eq(tdt_future_poll(&wait, &cx), TDT_PENDING);
	leaf_open(&leaf[1]);
	bell_wait(bell);
	ck_assert_uint_eq(tdt_future_poll(&wait, &cx), TDT_READY);
	ck_assert_uint_eq(joined.id, 0);
}

TEST(all_are_aborted_also_a_second_time)
{
	go(2);
	tdt_join_set_abort(set);
	await(tdt_join_set_wait(set));
	leaf[0] = leaf[1] = (struct leaf){ 0 };
	go(2);
	tdt_join_set_abort(set);
	tdt_join_set_abort(set);
	await(tdt_join_set_wait(set));
	ck_assert_int_eq(leaf[0].drops, 1);
	ck_assert_int_eq(leaf[1].drops, 1);
}

/* 0: a task does not end, 1: all do */
TEST(a_drain_that_comes_to_its_deadline_aborts_what_is_left, .to = 2)
{
	const uint64_t ms = _i == 0 ? 1 : 600000;
	bool late = _i == 1;

	go(2);
	for (int i = 0; i <= _i; i++)
		leaf_open(&leaf[i]);
	ck_assert_int_eq(
	    tdt_rt_block_on(rt, tdt_timeout_ms(tdt_join_set_wait(set), ms, &late)), 0);
	ck_assert_int_eq(late, _i == 0);
	ck_assert_int_eq(leaf[1].drops, _i);
	if (late)
		tdt_join_set_abort(set);
	await(tdt_join_set_wait(set));
	ck_assert_int_eq(leaf[0].drops, 1);
	ck_assert_int_eq(leaf[1].drops, 1);
}

TEST(a_set_that_is_given_up_aborts_its_tasks)
{
	struct tdt_context cx = { &bell->waker };
	struct tdt_future wait;

	go(TASKS);
	wait = tdt_join_set_wait(set);
	ck_assert_uint_eq(tdt_future_poll(&wait, &cx), TDT_PENDING);
	tdt_join_set_free(set);
	set = NULL;
	bell_wait(bell);
	ck_assert_uint_eq(tdt_future_poll(&wait, &cx), TDT_READY);
	tdt_future_drop(&wait);
	for (int i = 0; i < TASKS; i++)
		UNTIL(leaf[i].drops == 1);
}

TEST(a_runtime_that_is_freed_ends_the_tasks_of_a_set)
{
	struct leaf late = { .open = true };

	go(TASKS);
	tdt_rt_free(rt);
	rt = NULL;
	for (int i = 0; i < TASKS; i++)
		ck_assert_int_eq(next().outcome, -ECANCELED);
	ck_assert_uint_eq(next().id, 0);
	/* Sanitizers see whether the set still has a runtime to look at. */
	ck_assert_int_eq(tdt_join_set_go(set, leaf_future(&late), NULL), -ESHUTDOWN);
	ck_assert_int_eq(late.drops, 1);
}

/* 0: for all, so the first of its tasks is a reason; 1: for any, so none of two is */
TEST(a_task_depends_on_one_that_it_cannot_do_without, .to = 2)
{
	static const char *const poll[] = { "tdt_join_set_wait", "tdt_join_set_next" };
	const struct tdt_task_info *info;
	struct tdt_future future;

	go(2);
	ck_assert_int_eq(tdt_join_set_set_name(set, "requests"), 0);
	future = _i == 0 ? tdt_join_set_wait(set) : tdt_join_set_next(set, NULL, NULL);
	TEST_TASK(waits, &future);
	ASKED(asks, waits.handle);
	ck_assert_uint_eq(test_task_poll(&waits), TDT_PENDING);
	info = test_answer(&asks);
	ck_assert_uint_eq(info->n_waits, 1);
	ck_assert_uint_eq(info->waits[0]->kind, _i == 0 ? TDT_WAIT_TASK : TDT_WAIT_OTHER);
	ck_assert_int_eq(info->waits[0]->owner != 0, _i == 0);
	ck_assert_str_eq(info->waits[0]->name, "requests");
	ck_assert_int_eq(test_nodes_of(asks.trace, poll[_i]), 1);
}

/* --- What is taken over ----------------------------------------------------------- */

TEST(a_future_is_taken_over_by_a_call_that_fails)
{
	ck_assert_fails(tdt_rt_go(NULL, leaf_future(&leaf[0]), NULL), EINVAL);
	ck_assert_int_eq(leaf[0].drops, 1);
	ck_assert_int_eq(tdt_join_set_go(NULL, leaf_future(&leaf[1]), NULL), -EINVAL);
	ck_assert_int_eq(leaf[1].drops, 1);
	ck_assert_int_eq(tdt_rt_go(rt, TDT_FUTURE_NONE, NULL), -EINVAL);
	ck_assert_ptr_null(tdt_join_set_new(NULL));
	tdt_join_set_free(NULL);
	tdt_join_set_abort(NULL);
	leaf[2].open = true;
	ck_assert_int_eq(tdt_rt_go(rt, leaf_future(&leaf[2]), NULL), 0);
	UNTIL(leaf[2].drops == 1);
}

static int go_once(void *argument)
{
	int *drops = argument, result;

	leaf[0] = (struct leaf){ .open = true };
	result = tdt_join_set_go(set, leaf_future(&leaf[0]), TDT_TASK_ATTR());
	UNTIL(leaf[0].drops == 1);
	++*drops;
	return result;
}

TEST(and_for_lack_of_memory)
{
	int drops = 0;

	NEEDS_FAILING_MEMORY();
	for (int i = 0;; i++) {
		int result;

		no_memory_begin(i);
		result = go_once(&drops);
		no_memory_end();
		ck_assert_int_eq(drops, i + 1);
		if (result == 0)
			break;
		ck_assert_int_eq(result, -ENOMEM);
		ck_assert_int_lt(i, 20);
	}
	ck_assert_int_gt(drops, 1);
	await(tdt_join_set_wait(set));
}

/* --- Many at once ----------------------------------------------------------------- */

static atomic_int alive;

struct yields {
	struct tdt_async async;
	int n;
};

static void yields_fini(void *state)
{
	atomic_fetch_sub(&alive, 1);
}

static tdt_poll_t yields_poll(void *state, struct tdt_context *cx)
{
	struct yields *yields = state;

	TDT_BEGIN(&yields->async, cx);
	while (yields->n-- > 0)
		TDT_AWAIT(tdt_yield_now());
	TDT_END();
}

static void *abort_them(void *argument)
{
	tdt_join_set_abort(argument);
	return NULL;
}

TEST(tasks_that_run_are_aborted_at_any_moment)
{
	unsigned choices = seed_of_run();

	for (int round = 0; round < ROUNDS; round++) {
		struct joined joined;
		pthread_t thread;
		int n = 1 + (int)random_below(&choices, 20), seen = 0;

		for (int i = 0; i < n; i++) {
			struct tdt_future future = TDT_ASYNC_NEW(
			    yields_poll, (struct yields){ .async.fini = yields_fini,
							  .n = (int)random_below(&choices, 9) });

			atomic_fetch_add(&alive, 1);
			ck_assert_int_eq(tdt_join_set_go(set, future, TDT_TASK_ATTR()), 0);
		}
		ck_assert_int_eq(pthread_create(&thread, NULL, abort_them, set), 0);
		while ((joined = next()).id != 0) {
			ck_assert(joined.outcome == 0 || joined.outcome == -ECANCELED);
			seen++;
		}
		ck_assert_int_eq(seen, n);
		ck_assert_int_eq(alive, 0);
		pthread_join(thread, NULL);
	}
}
