// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers runtime/block_on.  tdt_rt_block_on() polls a future on the calling thread. */

#include "lib/leaf.h"
#include "lib/options.h"
#include "lib/request_waiting.h"
#include "lib/rt.h"
#include "lib/test.h"

static struct tdt_rt *rt;

static void setup(void)
{
	rt = rt_of(2);
}

static void teardown(void)
{
	tdt_rt_free(rt);
}

static void expect_refused(struct tdt_rt *on, struct tdt_future fut, int error)
{
	errno = 0;
	MUST(tdt_rt_block_on(on, fut) == -error);
	MUST(errno == error);
}

static pthread_t polled_by;

static void look_around(struct leaf *leaf, struct tdt_context *cx)
{
	polled_by = pthread_self();
	MUST(tdt_rt_current() == rt);
}

CASE(block_on, .setup = setup, .teardown = teardown)

TEST(it_polls_on_the_calling_thread)
{
	struct leaf leaf = { .open = true, .on_poll = look_around };

	ck_assert_int_eq(tdt_rt_block_on(rt, leaf_future(&leaf)), 0);
	ck_assert(pthread_equal(polled_by, pthread_self()));
	ck_assert_ptr_null(tdt_rt_current());
	ck_assert_int_eq(leaf.polls, 1);
	ck_assert_int_eq(leaf.drops, 1);
}

static void *open_later(void *arg)
{
	struct leaf *leaf = arg;

	for (int i = 1; i <= 5; i++) {
		UNTIL(leaf->polls == i && leaf->waker != NULL);
		leaf_pause();
		MUST(leaf->polls == i);
		if (i < 5)
			leaf_wake(leaf);
	}
	leaf_open(leaf);
	return NULL;
}

TEST(it_sleeps_until_it_is_woken)
{
	struct leaf leaf = { 0 };
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, open_later, &leaf), 0);
	ck_assert_int_eq(tdt_rt_block_on(rt, leaf_future(&leaf)), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(leaf.polls, 6);
	ck_assert_int_eq(leaf.drops, 1);
}

static void wake_itself(struct leaf *leaf, struct tdt_context *cx)
{
	for (int i = 0; i < 3; i++)
		tdt_waker_wake_by_ref(cx->waker);
	if (leaf->polls == 100)
		leaf->open = true;
}

TEST(a_wake_up_during_the_poll_leads_to_one_more)
{
	struct leaf leaf = { .on_poll = wake_itself };

	ck_assert_int_eq(tdt_rt_block_on(rt, leaf_future(&leaf)), 0);
	ck_assert_int_eq(leaf.polls, 100);
}

TEST(a_panic_is_told)
{
	struct leaf leaf = { .open = true, .result = TDT_PANICKED };

	ck_assert_fails(tdt_rt_block_on(rt, leaf_future(&leaf)), ENOTRECOVERABLE);
	ck_assert_int_eq(leaf.drops, 1);
}

TEST(wrong_calls_leave_the_future_alone)
{
	struct leaf leaf = { 0 };
	struct tdt_future fut = leaf_future(&leaf), undroppable = fut;

	undroppable.drop = NULL;
	expect_refused(NULL, fut, EINVAL);
	expect_refused(rt, TDT_FUTURE_NONE, EINVAL);
	expect_refused(rt, undroppable, EINVAL);
	ck_assert_int_eq(leaf.polls, 0);
	ck_assert_int_eq(leaf.drops, 0);
}

static struct leaf inner;

static void nest(struct leaf *leaf, struct tdt_context *cx)
{
	expect_refused(rt, leaf_future(&inner), EDEADLK);
	MUST(tdt_rt_current() == rt);
}

TEST(it_does_not_nest_nor_run_on_a_worker)
{
	struct leaf outer = { .open = true, .on_poll = nest },
		    task = { .open = true, .on_poll = nest };

	ck_assert_int_eq(tdt_rt_block_on(rt, leaf_future(&outer)), 0);
	tdt_handle_unref(tdt_rt_spawn(rt, leaf_future(&task), NULL));
	UNTIL(task.drops == 1);
	ck_assert_int_eq(inner.polls, 0);
	ck_assert_int_eq(inner.drops, 0);
}

static struct leaf refused;

static void block_on_refused(struct leaf *leaf)
{
	expect_refused(leaf->data, leaf_future(&refused), ESHUTDOWN);
}

TEST(it_is_refused_while_the_runtime_ends)
{
	struct tdt_rt *other = tdt_rt_new(NULL);
	struct leaf leaf = { .on_drop = block_on_refused, .data = other };

	tdt_handle_unref(tdt_rt_spawn(other, leaf_future(&leaf), NULL));
	tdt_rt_free(other);
	ck_assert_int_eq(leaf.drops, 1);
	ck_assert_int_eq(refused.drops, 0);
}

static void *ask(void *arg)
{
	struct leaf *leaf = arg;
	struct tdt_trace *trace;

	UNTIL(leaf->polls == 1 && leaf->waker != NULL);
	trace = request_waiting(leaf->data);
	leaf_open(leaf);
	return trace;
}

TEST(it_can_be_asked_where_it_waits)
{
	struct leaf leaf = { 0 };
	struct tdt_traced traced = tdt_traced(leaf_future(&leaf));
	pthread_t thread;
	void *answer;

	leaf.data = traced.handle;
	ck_assert_int_eq(pthread_create(&thread, NULL, ask, &leaf), 0);
	ck_assert_int_eq(tdt_rt_block_on(rt, traced.future), 0);
	pthread_join(thread, &answer);
	TRACE(trace, answer);
	ck_assert_uint_eq(tdt_trace_info(trace)->id, tdt_handle_id(traced.handle));
	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 1);
	tdt_handle_unref(traced.handle);
}

/* A clone beside the one that the leaf keeps. */
static void clone_too(struct leaf *leaf, struct tdt_context *cx)
{
	leaf->data = (void *)(uintptr_t)tdt_waker_clone(cx->waker);
}

TEST(its_wakers_outlive_it)
{
	struct leaf leaf = { .open = true, .on_poll = clone_too };
	const struct tdt_waker *clone;

	ck_assert_int_eq(tdt_rt_block_on(rt, leaf_future(&leaf)), 0);
	clone = tdt_waker_clone(leaf.data);
	ck_assert_ptr_eq(clone, leaf.data);
	tdt_waker_wake_by_ref(clone);
	tdt_waker_wake(leaf.data);
	tdt_waker_drop(clone);
}

/* A task and a thread in tdt_rt_block_on() wake each other in turn. */
struct player {
	struct player *other;
	const struct tdt_waker *_Atomic waker;
	atomic_int turns;
	int played;
};

#define TURNS 2000

static tdt_poll_t player_poll(void *state, struct tdt_context *cx)
{
	struct player *player = state;

	for (;;) {
		tdt_waker_drop(atomic_exchange(&player->waker, tdt_waker_clone(cx->waker)));
		if (atomic_load(&player->turns) == player->played)
			return TDT_PENDING;
		player->played++;
		atomic_fetch_add(&player->other->turns, 1);
		tdt_waker_wake(atomic_exchange(&player->other->waker, NULL));
		if (player->played == TURNS)
			return TDT_READY;
	}
}

static void *play(void *unused)
{
	struct player players[2] = { { .other = &players[1], .turns = 1 },
				     { .other = &players[0] } };
	struct tdt_handle *handle = tdt_rt_spawn(
	    rt, (struct tdt_future){ &players[0], player_poll, drop_nothing }, TDT_TASK_ATTR());

	MUST(tdt_rt_block_on(rt, (struct tdt_future){ &players[1], player_poll, drop_nothing }) ==
	     0);
	/* The other one has played its last turn, but may not have returned yet. */
	for (;;) {
		struct tdt_trace *trace = backtrace_timed(handle, 0);

		tdt_trace_free(trace);
		if (trace == NULL && errno == ESRCH)
			break;
		leaf_pause();
	}
	tdt_handle_unref(handle);
	for (int i = 0; i < 2; i++)
		tdt_waker_drop(players[i].waker);
	return NULL;
}

TEST(several_threads_may_be_in_it)
{
	pthread_t threads[4];

	threads_start(threads, 4, play, NULL);
	threads_join(threads, 4);
}
