// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers watch/watch, watch/epoch, watch/last_tree, watch/last_trace.  The last tree of each
 * watched task is there without a request, and says what is known of the task now.  Epochs are
 * advanced by hand, but for what is reported of the ticker itself.
 */

#include <config.h>

#include <tdt/integrate/hooks.h>
#include <tdt/layout/registry.h>

#include "lib/leaf.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "lib/threads.h"
#include "watch/watch.h"

#define SECOND INT64_C(1000000000)

static void watch_by_hand(void)
{
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
}

static void watch_no_more(void)
{
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
}

static struct tdt_trace *last_of(struct tdt_handle *handle)
{
	struct tdt_trace *trace = tdt_backtrace_last(handle);

	ck_assert_ptr_nonnull(trace);
	return trace;
}

/* How many polls ago the tree was made. */
static uint64_t polls_since(struct tdt_handle *handle)
{
	TRACE(trace, last_of(handle));

	return tdt_trace_info(trace)->polls_since;
}

static void expect_none(struct tdt_handle *handle)
{
	ck_assert_ptr_fails(tdt_backtrace_last(handle), ENODATA);
}

CASE(kept, .setup = watch_by_hand, .teardown = watch_no_more)

TEST(a_tree_is_there_without_asking_or_any_poll_or_wake_for_it)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	expect_none(task.handle);
	test_task_poll(&task);
	TRACE(trace, last_of(task.handle));
	ck_assert_uint_eq(tdt_trace_info(trace)->id, tdt_handle_id(task.handle));
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_WAITING);
	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 1);
	ck_assert_uint_eq(tdt_trace_info(trace)->polls, 1);
	ck_assert_uint_eq(tdt_trace_info(trace)->polls_since, 0);
	ck_assert_int_eq(test_nodes_of(trace, "test_future_poll"), 1);
	ck_assert_int_eq(task.leaf.polls, 1);
	ck_assert_int_eq(task.waker.wakes, 0);
	/* The leaf has got the runtime's own waker, as ever. */
	ck_assert_ptr_eq(task.leaf.waker, &task.waker.waker);
}

TEST(a_task_is_captured_once_an_epoch)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	for (unsigned epoch = 0; epoch < 5; epoch++) {
		for (unsigned i = 0; i < 4; i++) {
			test_task_poll(&task);
			ck_assert_uint_eq(polls_since(task.handle), i);
		}
		tdt__watch_pass(TDT__WATCH_LONGEST);
		ck_assert_uint_eq(polls_since(task.handle), 3);
	}
}

TEST(a_tree_tells_its_age_and_the_task_its_state_of_now)
{
	struct timespec clock;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &clock);
	now = (uint64_t)(clock.tv_sec * SECOND + clock.tv_nsec);
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	tdt_worker_now(now - 70 * SECOND);
	test_task_poll(&task);
	tdt_worker_now(now - 30 * SECOND);
	test_task_poll(&task);
	TRACE(trace, last_of(task.handle));
	ck_assert_uint_ge(tdt_trace_info(trace)->age_ns, 70 * SECOND);
	ck_assert_uint_ge(tdt_trace_info(trace)->state_ns, 30 * SECOND);
	ck_assert_uint_lt(tdt_trace_info(trace)->state_ns, tdt_trace_info(trace)->age_ns);
	ck_assert_uint_eq(tdt_trace_info(trace)->polls, 2);
	ck_assert_uint_eq(tdt_trace_info(trace)->polls_since, 1);
	tdt_worker_now(0);
}

static struct tdt_handle *looked_at;
static struct tdt_trace *seen;

static void look(void *argument)
{
	seen = tdt_backtrace_last(looked_at);
}

TEST(a_task_in_the_middle_of_a_poll_has_its_last_tree)
{
	struct test_busy busy = { .result = TDT_PENDING };
	struct tdt_future child = test_busy_future(&busy);
	TEST_TASK(task, &child);

	looked_at = task.handle;
	test_task_poll(&task);
	busy.act = look;
	for (int watched = 0; watched < 2; watched++) {
		test_task_poll(&task);
		ck_assert_ptr_nonnull(seen);
		ck_assert_int_eq(tdt_trace_info(seen)->state, TDT_TASK_RUNNING);
		ck_assert_uint_eq(tdt_trace_info(seen)->thread, (uint32_t)gettid());
		ck_assert_uint_eq(tdt_trace_info(seen)->polls_since, 1 + (unsigned)watched);
		ck_assert_int_eq(test_nodes_of(seen, "act_in_poll"), 1);
		tdt_trace_free(seen);
		tdt__watch_pass(TDT__WATCH_LONGEST);
	}
}

TEST(a_task_that_has_ended_keeps_the_last_tree_it_waited_with)
{
	const tdt_poll_t results[] = { TDT_READY, TDT_PANICKED };
	const enum tdt_task_state states[] = { TDT_TASK_READY, TDT_TASK_PANICKED,
					       TDT_TASK_PANICKED };

	for (int i = 0; i < 3; i++) {
		struct test_task task = {
			.leaf = { .name = 'a', .pending = 1, .result = results[i % 2] }
		};

		test_task_init(&task, NULL);
		test_task_poll(&task);
		tdt__watch_pass(TDT__WATCH_LONGEST);
		if (i < 2)
			ck_assert_int_eq(test_task_poll(&task), results[i]);
		tdt_future_drop(&task.future);
		TRACE(trace, last_of(task.handle));
		ck_assert_int_eq(tdt_trace_info(trace)->state, states[i]);
		ck_assert_uint_eq(tdt_trace_info(trace)->polls_since, i < 2);
		ck_assert_int_eq(test_nodes_of(trace, "stay_pending"), 1);
		test_task_fini(&task);
	}
}

TEST(a_task_that_never_waited_has_no_tree)
{
	TEST_TASK(task, NULL, .name = 'a');

	test_task_poll(&task);
	expect_none(task.handle);
}

TEST(a_record_that_is_used_again_shows_no_tree_of_the_task_before)
{
	struct test_task before = { .leaf = { .name = 'a', .pending = 9 } };
	const struct tdt_handle *record;

	test_task_init(&before, NULL);
	record = before.handle;
	test_task_poll(&before);
	test_task_fini(&before);
	TEST_TASK(task, NULL, .name = 'b', .pending = 9);
	ck_assert_ptr_eq(task.handle, record);
	expect_none(task.handle);
	test_task_poll(&task);
	ck_assert_uint_eq(polls_since(task.handle), 0);
}

TEST(nested_tasks_have_a_tree_each)
{
	NESTED_TASKS(outer, inner, NULL, .name = 'a', .pending = 9);

	test_task_poll(&outer);
	TRACE(of_inner, last_of(inner.handle));
	TRACE(of_outer, last_of(outer.handle));
	ck_assert_uint_gt(tdt_trace_stack(of_outer, 0, NULL, 0, NULL),
			  tdt_trace_stack(of_inner, 0, NULL, 0, NULL));
	ck_assert_uint_eq(tdt_trace_info(of_outer)->leaves, 1);
}

TEST(a_poll_that_is_asked_for_too_answers_and_is_kept)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	ASKED(requester, task.handle);

	test_task_poll(&task);
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
	ck_assert_uint_eq(tdt_trace_info(requester.trace)->age_ns, 0);
	ck_assert_uint_eq(polls_since(task.handle), 0);
}

TEST(what_makes_no_sense_is_refused)
{
	ck_assert_ptr_fails(tdt_backtrace_last(NULL), EINVAL);
	ck_assert_fails(tdt_watch(-1, NULL), EINVAL);
	ck_assert_uint_eq(tdt__registry.watch_ns, INT64_MAX);
}

/* How long the epoch before was: profiles weigh trees by it. */
static uint64_t epoch_behind_a_late_tick(int64_t interval)
{
	const struct timespec late = { .tv_nsec = 3 * interval };
	unsigned before;

	pthread_mutex_lock(&tdt__watch_lock);
	before = tdt__epoch_now();
	nanosleep(&late, NULL);
	pthread_mutex_unlock(&tdt__watch_lock);
	while (tdt__epoch_now() == before)
		sched_yield();
	return atomic_load_explicit(&tdt__epoch.tick, memory_order_relaxed);
}

TEST(an_epoch_is_as_long_as_it_was_although_the_ticker_is_late)
{
	const int64_t interval = SECOND / 20;
	uint64_t tick = 0;

	ck_assert_int_eq(tdt_watch(interval, NULL), 0);
	/* If this thread is late, too, it sees the epoch behind. */
	while (tick < (uint64_t)(2 * interval))
		tick = epoch_behind_a_late_tick(interval);
	watch_no_more();
}

/* 0 would say that nobody watches, and polls would be captured no more. */
TEST(the_number_of_an_epoch_wraps_and_is_never_0)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);
	unsigned before = tdt__epoch_now(), wraps = 0;

	for (unsigned i = 0; i < TDT__EPOCH_LABELS; i++) {
		unsigned now;

		tdt__watch_pass(TDT__WATCH_LONGEST);
		now = tdt__epoch_now();
		ck_assert_uint_ne(now, 0);
		ck_assert_uint_ne(now, before);
		if (now < before) {
			test_task_poll(&task);
			ck_assert_uint_eq(polls_since(task.handle), 0);
			wraps++;
		}
		before = now;
	}
	ck_assert_uint_eq(wraps, 1);
}

/* --- How much is kept ------------------------------------------------------------------------ */

struct deep {
	int depth;
	int leaves; /* each at the end of a stack of its own */
};

static __attribute__((noinline)) void clone_deep(int depth, struct tdt_context *cx)
{
	if (depth > 1)
		clone_deep(depth - 1, cx);
	else
		tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

/*
 * Each time elsewhere on the stack: leaves at one place, with the same callers, would share them.
 */
static __attribute__((noinline)) void clone_apart(int i, int depth, struct tdt_context *cx)
{
	char *volatile apart = __builtin_alloca(64 * (size_t)(i + 1));

	*apart = 0;
	clone_deep(depth, cx);
	TDT_KEEP_FRAME();
}

static tdt_poll_t deep_poll(void *state, struct tdt_context *cx)
{
	const struct deep *deep = state;

	for (int i = 0; i < deep->leaves; i++)
		clone_apart(i, deep->depth, cx);
	return TDT_PENDING;
}

static struct tdt_future deep_future(struct deep *deep)
{
	return (struct tdt_future){ deep, deep_poll, drop_nothing };
}

static size_t frames_of(struct tdt_handle *handle, enum tdt_cut *cut)
{
	TRACE(trace, last_of(handle));

	return tdt_trace_stack(trace, 0, NULL, 0, cut);
}

CASE(size, .setup = watch_by_hand, .teardown = watch_no_more)

TEST(a_tree_may_grow)
{
	const int depths[] = { 1, 9, 10, 30, 7, 100, 3, 250, 2 };
	struct deep deep = { 1, 1 };
	struct tdt_future child = deep_future(&deep);
	size_t around;
	enum tdt_cut cut;
	TEST_TASK(task, &child);

	test_task_poll(&task);
	around = frames_of(task.handle, NULL) - 1;
	for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
		deep.depth = depths[i];
		tdt__watch_pass(TDT__WATCH_LONGEST);
		test_task_poll(&task);
		ck_assert_uint_eq(polls_since(task.handle), 0);
		ck_assert_uint_eq(frames_of(task.handle, &cut), (size_t)depths[i] + around);
		ck_assert_int_eq(cut, TDT_CUT_NOT);
	}
}

TEST(a_stack_that_is_too_deep_is_cut_and_marked)
{
	struct deep deep = { 2 * TDT_MAX_FRAMES, 1 };
	struct tdt_future child = deep_future(&deep);
	enum tdt_cut cut;
	TEST_TASK(task, &child);

	test_task_poll(&task);
	ck_assert_uint_eq(frames_of(task.handle, &cut), TDT_MAX_FRAMES);
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
}

TEST(a_tree_that_is_too_large_is_cut_and_says_how_many_leaves_it_lacks)
{
	struct deep deep = { 100, 20 };
	struct tdt_future child = deep_future(&deep);
	enum tdt_cut cut;
	TEST_TASK(task, &child);

	test_task_poll(&task);
	TRACE(trace, last_of(task.handle));
	ck_assert_uint_eq(tdt_trace_info(trace)->leaves, 6);
	ck_assert_uint_eq(tdt_trace_info(trace)->leaves_lost, 14);
	tdt_trace_stack(trace, 4, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	tdt_trace_stack(trace, 5, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
}

/* A requester on another thread, which wants more, or less. */
struct requester {
	struct tdt_handle *handle;
	uint32_t max_frames;
	struct tdt_trace *trace;
};

static void *ask(void *argument)
{
	struct requester *requester = argument;
	const struct tdt_backtrace_options options = { .size = sizeof options,
						       .timeout_ns = 60 * SECOND,
						       .max_frames = requester->max_frames };

	requester->trace = tdt_backtrace_with(requester->handle, &options);
	return NULL;
}

/* Have the next poll answer a requester that wants `max_frames`, and return the answer. */
static struct tdt_trace *poll_asked(struct test_task *task, uint32_t max_frames)
{
	struct requester requester = { task->handle, max_frames, NULL };
	pthread_t thread;

	/* A poll that takes its time is shown where it is just now. */
	do {
		tdt_trace_free(requester.trace);
		ck_assert_int_eq(pthread_create(&thread, NULL, ask, &requester), 0);
		UNTIL(TDT__PEEK(task->handle->record.own_request) != 0);
		test_task_poll(task);
		pthread_join(thread, NULL);
		ck_assert_ptr_nonnull(requester.trace);
	} while (tdt_trace_info(requester.trace)->state == TDT_TASK_RUNNING);
	return requester.trace;
}

TEST(a_requester_may_get_more_than_is_kept)
{
	struct deep deep = { 3 * TDT__LAST_TREE_MAX, 1 };
	struct tdt_future child = deep_future(&deep);
	enum tdt_cut cut;
	TEST_TASK(task, &child);
	TRACE(trace, poll_asked(&task, 4 * TDT__LAST_TREE_MAX));

	ck_assert_uint_gt(tdt_trace_stack(trace, 0, NULL, 0, &cut), 3 * TDT__LAST_TREE_MAX);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	ck_assert_uint_eq(frames_of(task.handle, &cut), TDT__LAST_TREE_MAX);
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
}

TEST(a_requester_who_wants_less_leaves_the_watching_to_the_next_poll)
{
	struct deep deep = { 20, 1 };
	struct tdt_future child = deep_future(&deep);
	TEST_TASK(task, &child);
	TRACE(trace, poll_asked(&task, 1));

	ck_assert_uint_eq(tdt_trace_stack(trace, 0, NULL, 0, NULL), 1);
	expect_none(task.handle);
	test_task_poll(&task);
	ck_assert_uint_eq(polls_since(task.handle), 0);
	ck_assert_uint_gt(frames_of(task.handle, NULL), 20);
}

#if TDT_WALK_RULES
/* Functions that no other test calls: their PCs are new. */
#define CALLS(name, callee)                                                                        \
	static __attribute__((noinline)) void name(struct tdt_context *cx)                         \
	{                                                                                          \
		callee(cx);                                                                        \
		TDT_KEEP_FRAME();                                                                  \
	}

static __attribute__((noinline)) void new_0(struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

CALLS(new_1, new_0)
CALLS(new_2, new_1)
CALLS(new_3, new_2)
CALLS(new_4, new_3)
CALLS(new_5, new_4)
CALLS(new_6, new_5)
CALLS(new_7, new_6)
CALLS(new_8, new_7)
CALLS(new_9, new_8)
CALLS(new_10, new_9)
CALLS(new_11, new_10)
CALLS(new_12, new_11)
CALLS(new_13, new_12)
CALLS(new_14, new_13)
CALLS(new_15, new_14)
CALLS(new_16, new_15)
CALLS(new_17, new_16)
CALLS(new_18, new_17)
CALLS(new_19, new_18)

static tdt_poll_t new_poll(void *state, struct tdt_context *cx)
{
	new_19(cx);
	return TDT_PENDING;
}

TEST(a_watched_poll_learns_a_little_and_the_next_goes_on_from_there)
{
	struct tdt_future child = { NULL, new_poll, drop_nothing };
	size_t before = 0;
	enum tdt_cut cut;
	int epochs = 0;
	TEST_TASK(task, &child);

	do {
		size_t frames;

		test_task_poll(&task);
		ck_assert_uint_eq(polls_since(task.handle), 0);
		frames = frames_of(task.handle, &cut);
		/* And the one that was not learned. */
		ck_assert_uint_le(frames, (size_t)TDT__SPARE_LEARNS * (size_t)++epochs + 1);
		ck_assert_uint_gt(frames, before);
		before = frames;
		tdt__watch_pass(TDT__WATCH_LONGEST);
		if (cut != TDT_CUT_NOT)
			ck_assert_int_eq(cut, TDT_CUT_LIMIT);
	} while (cut != TDT_CUT_NOT);
	ck_assert_uint_ge(before, 21);
	ck_assert_int_gt(epochs, 2);
}

TEST(who_asks_learns_all_at_once_for_those_who_watch_too)
{
	struct tdt_future child = { NULL, new_poll, drop_nothing };
	enum tdt_cut cut;
	TEST_TASK(task, &child);
	ASKED(requester, task.handle);

	test_task_poll(&task);
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
	tdt_trace_stack(requester.trace, 0, NULL, 0, &cut);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
	tdt__watch_pass(TDT__WATCH_LONGEST);
	test_task_poll(&task);
	ck_assert_uint_ge(frames_of(task.handle, &cut), 21);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
}
#endif

#define ENOUGH 256 /* captures that a few ticks never make */

static int take_all_captures(struct tdt__capture **taken)
{
	int n = 0;

	while (n < ENOUGH && (taken[n] = tdt__spare_take()) != NULL)
		n++;
	ck_assert_int_lt(n, ENOUGH);
	return n;
}

static void give_back(struct tdt__capture **taken, int n)
{
	while (n > 0)
		tdt__spare_give(taken[--n]);
}

CASE(pools, .setup = watch_by_hand, .teardown = watch_no_more)

TEST(with_no_capture_left_a_task_is_left_out_until_the_next_epoch)
{
	struct tdt__capture *taken[ENOUGH];
	int n;
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	test_task_poll(&task);
	tdt__watch_pass(TDT__WATCH_LONGEST);
	n = take_all_captures(taken);
	test_task_poll(&task);
	ck_assert_uint_eq(polls_since(task.handle), 1);
	give_back(taken, n);
	test_task_poll(&task);
	ck_assert_uint_eq(polls_since(task.handle), 2);
	tdt__watch_pass(TDT__WATCH_LONGEST);
	test_task_poll(&task);
	ck_assert_uint_eq(polls_since(task.handle), 0);
}

TEST(with_no_capture_left_a_task_without_a_tree_is_captured_in_the_next_poll)
{
	struct tdt__capture *taken[ENOUGH];
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);
	int n = take_all_captures(taken);

	test_task_poll(&task);
	expect_none(task.handle);
	give_back(taken, n);
	test_task_poll(&task);
	ck_assert_uint_eq(polls_since(task.handle), 0);
}

TEST(captures_that_were_missed_are_there_the_next_time)
{
	struct tdt__capture *taken[ENOUGH];
	int n = take_all_captures(taken), more;

	tdt__watch_pass(TDT__WATCH_LONGEST);
	more = take_all_captures(taken + n);
	ck_assert_int_gt(more, 0);
	give_back(taken, n + more);
}

#define MANY 10000
#define SOME 1000

static struct test_task burst[MANY];

static int burst_size;

static void spawn_burst(int n)
{
	burst_size = n;
	for (int i = 0; i < burst_size; i++) {
		burst[i].leaf = (struct test_future){ .name = 'a', .pending = 99, .yield = true };
		test_task_init(&burst[i], NULL);
	}
}

static void poll_burst(void)
{
	for (int i = 0; i < burst_size; i++) {
		test_events_clear();
		test_task_poll(&burst[i]);
	}
}

static void expect_a_tree_each(void)
{
	for (int i = 0; i < burst_size; i++)
		ck_assert_uint_eq(polls_since(burst[i].handle), 0);
}

static void end_burst(void)
{
	for (int i = 0; i < burst_size; i++) {
		test_events_clear();
		test_task_fini(&burst[i]);
	}
}

/* Nobody ticks: what they need was made when they were spawned. */
TEST(each_task_of_a_burst_has_a_tree_after_its_only_poll)
{
	spawn_burst((int)times_here(MANY));
	poll_burst();
	expect_a_tree_each();
	end_burst();
}

TEST(each_task_that_was_there_before_the_watch_has_a_tree_after_its_next_poll)
{
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	spawn_burst(SOME);
	poll_burst();
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	poll_burst();
	expect_a_tree_each();
	end_burst();
}

/* Tasks that are there and have no tree are expected to take one: but once, not at each start. */
TEST(a_watch_that_is_turned_on_again_and_again_makes_no_more_room_each_time)
{
	uint32_t made;

	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	spawn_burst(SOME);
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	made = tdt__last_tree_made();
	ck_assert_uint_ge(made, SOME);
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(tdt_watch(0, NULL), 0);
		ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	}
	ck_assert_uint_eq(tdt__last_tree_made(), made);
	end_burst();
}

/*
 * Their trees are larger than was expected, and no larger room is there: then each is to have one
 * room of that size.
 */
TEST(tasks_that_find_no_room_of_their_size_have_room_of_that_size_made)
{
	struct deep deep = { 60, 1 };
	struct tdt_future child = deep_future(&deep);
	uint32_t made;
	enum tdt_cut cut;

	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	burst_size = SOME;
	for (int i = 0; i < burst_size; i++)
		test_task_init(&burst[i], &child);
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	poll_burst();
	made = tdt__last_tree_made();
	tdt__watch_pass(TDT__WATCH_LONGEST);
	ck_assert_uint_le(tdt__last_tree_made(), made + SOME + SOME / 2);
	poll_burst();
	for (int i = 0; i < burst_size; i++) {
		ck_assert_uint_ge(frames_of(burst[i].handle, &cut), 60);
		ck_assert_int_eq(cut, TDT_CUT_NOT);
	}
	end_burst();
}

/* However many there are between two ticks: they need the room of one. */
TEST(tasks_that_come_and_go_one_after_the_other_have_no_room_made)
{
	uint32_t made = tdt__last_tree_made();

	for (unsigned i = 0; i < times_here(MANY); i++) {
		spawn_burst(1);
		poll_burst();
		end_burst();
	}
	tdt__watch_pass(TDT__WATCH_LONGEST);
	ck_assert_uint_le(tdt__last_tree_made(), made + 200);
}

/*
 * Of a burst after which nobody polls, or which is dropped before the first poll, nothing is left
 * promised.
 */
TEST(what_was_promised_to_tasks_that_end_without_a_tree_is_there_for_others)
{
	uint32_t n = tdt__last_tree_promises();

	spawn_burst(SOME);
	ck_assert_uint_eq(tdt__last_tree_promises(), n + SOME);
	end_burst();
	ck_assert_uint_eq(tdt__last_tree_promises(), n);
	spawn_burst(SOME);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	poll_burst();
	ck_assert_uint_eq(tdt__last_tree_promises(), n);
	end_burst();
	ck_assert_uint_eq(tdt__last_tree_promises(), n);
}

TEST(a_task_that_is_gone_leaves_its_trees_to_others)
{
	for (int i = 0; i < SOME; i++) {
		test_events_clear();
		TEST_TASK(task, NULL, .name = 'a', .pending = 9, .yield = true);
		test_task_poll(&task);
		ck_assert_uint_eq(polls_since(task.handle), 0);
	}
}

TEST(a_tree_that_outgrows_its_room_leaves_that_to_others)
{
	for (int i = 0; i < SOME; i++) {
		struct deep deep = { 1, 1 };
		struct tdt_future child = deep_future(&deep);
		TEST_TASK(task, &child);

		for (int grown = 0; grown < 2; grown++) {
			test_task_poll(&task);
			ck_assert_uint_eq(polls_since(task.handle), 0);
			deep.depth = 40;
			/* Another epoch, and no ticker that would begin more of them. */
			task.handle->record.own_epoch = 0;
		}
	}
}

/* --- How often -------------------------------------------------------------------------------- */

#define INTERVAL (SECOND / 100)
#define FEW (INTERVAL / (SECOND / TDT__WATCH_MOST)) /* tasks that can all be captured in each */

/* Each is captured, as the first poll of a task is in any epoch. */
static void poll_new_tasks(int n)
{
	for (int i = 0; i < n; i++) {
		test_events_clear();
		TEST_TASK(task, NULL, .name = 'a', .pending = 9, .yield = true);
		test_task_poll(&task);
	}
}

/* How many intervals pass until the task is captured again. */
static int intervals_until_watched(struct test_task *task)
{
	int intervals = 0;

	do {
		tdt__watch_pass(INTERVAL);
		intervals++;
		test_events_clear();
		test_task_poll(task);
	} while (polls_since(task->handle) != 0);
	return intervals;
}

CASE(often, .setup = watch_by_hand, .teardown = watch_no_more)

TEST(of_few_tasks_each_is_captured_in_every_interval)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 999, .yield = true);

	test_task_poll(&task);
	for (int i = 0; i < 5; i++) {
		poll_new_tasks(FEW - 1);
		ck_assert_int_eq(intervals_until_watched(&task), 1);
	}
}

TEST(of_more_tasks_each_is_captured_as_much_less_often)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 999, .yield = true);

	test_task_poll(&task);
	poll_new_tasks(FEW);
	ck_assert_int_eq(intervals_until_watched(&task), 2);
	poll_new_tasks(7 * FEW - 1);
	ck_assert_int_eq(intervals_until_watched(&task), 7);
	/* What an epoch took is its own affair. */
	ck_assert_int_eq(intervals_until_watched(&task), 1);
}

TEST(of_any_number_of_tasks_each_is_captured_within_a_second)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 999, .yield = true);

	test_task_poll(&task);
	poll_new_tasks(TDT__WATCH_MOST + TDT__WATCH_MOST / 10);
	ck_assert_int_eq(intervals_until_watched(&task), SECOND / INTERVAL);
}

CASE(on, .setup = watch_by_hand, .teardown = watch_no_more)

TEST(off_it_captures_no_more_and_on_again_it_does)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 99);

	test_task_poll(&task);
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	ck_assert_uint_eq(tdt__registry.watch_ns, 0);
	for (unsigned i = 1; i < 4; i++) {
		tdt__watch_pass(TDT__WATCH_LONGEST);
		test_task_poll(&task);
		ck_assert_uint_eq(polls_since(task.handle), i);
		ck_assert_uint_eq(task.handle->record.own_epoch, 0);
	}
	watch_by_hand();
	test_task_poll(&task);
	ck_assert_uint_eq(polls_since(task.handle), 0);
}

/* Poll until there is a tree of a poll that began from here on. */
static void poll_until_watched(struct test_task *task)
{
	struct tdt_trace *trace;
	bool watched;

	tdt_trace_free(tdt_backtrace_last(task->handle));
	test_task_poll(task);
	do {
		leaf_pause();
		test_events_clear();
		test_task_poll(task);
		trace = tdt_backtrace_last(task->handle);
		watched = trace != NULL && tdt_trace_info(trace)->polls_since == 0;
		tdt_trace_free(trace);
	} while (!watched);
}

TEST(a_ticker_advances_the_epoch_with_whatever_interval_is_set)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 1000000, .yield = true);

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(tdt_watch(1, NULL), 0);
		ck_assert_uint_eq(tdt__registry.watch_ns, TDT_WATCH_MIN_NS);
		poll_until_watched(&task);
		poll_until_watched(&task);
		ck_assert_int_eq(tdt_watch(i == 0 ? 3600 * SECOND : 0, NULL), 0);
	}
	ck_assert_int_eq(threads_named("tdt-watch"), 1);
}

TEST(a_child_of_fork_is_not_watched_until_it_says_so, .skip = no_threads_in_children)
{
	ck_assert_int_eq(tdt_watch(1, NULL), 0);
	TEST_TASK(task, NULL, .name = 'a', .pending = 1000000, .yield = true);
	test_task_poll(&task);
	IN_A_CHILD {
		uint64_t polls = polls_since(task.handle);

		MUST(tdt__registry.watch_ns == 0 && tdt__epoch_now() == 0);
		MUST(threads_named("tdt-watch") == 0);
		test_task_poll(&task);
		MUST(polls_since(task.handle) == polls + 1);
#if TSAN
		printf("# not tried: a child starts no thread under ThreadSanitizer\n");
#else
		MUST(tdt_watch(1, NULL) == 0);
		poll_until_watched(&task);
		poll_until_watched(&task);
		MUST(threads_named("tdt-watch") == 1);
#endif
		fflush(stdout);
	}
}

CASE(environment)

TEST(the_environment_is_read_with_units_or_not_at_all)
{
	static const struct {
		const char *text;
		int64_t ns;
	} values[] = {
		{ NULL, -1 },	     { "", 0 },		{ "0", 0 },	      { "0s", 0 },
		{ "10", 10000000 },  { "10ms", 10000000 }, { "5us", 5000 },   { "7ns", 7 },
		{ "2s", 2000000000 }, { "007s", 7000000000 }, { "-1", -1 },   { "+1", -1 },
		{ " 1", -1 },	     { "1 ", -1 },	{ "1 ms", -1 },	      { "1m", -1 },
		{ "ms", -1 },	     { "1msx", -1 },	{ "1.5s", -1 },	      { "0x10", -1 },
		{ "1S", -1 },	     { "nan", -1 },	{ "9223372036854775807ns", INT64_MAX },
		{ "9223372036854775808ns", -1 },	{ "9223372036854775807", -1 },
		{ "99999999999999999999999", -1 },	{ "9223372037s", -1 },
		{ "9223372036s", 9223372036 * SECOND },
	};

	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
		ck_assert_msg(tdt__watch_parse(values[i].text) == values[i].ns, "%s",
			      values[i].text);
}

/*
 * What the interval is in a child with this in its environment that traces a future, after `first`,
 * if any.
 */
static void expect_of_environment(const char *text, int64_t first, uint64_t ns)
{
	struct test_task task = { .leaf = { .name = 'a', .pending = 9 } };
	struct tdt_trace *trace;
	int status;
	pid_t child = fork();

	ck_assert_int_ge(child, 0);
	if (child == 0) {
		MUST(setenv("TDT_WATCH", text, 1) == 0);
		if (first >= 0)
			MUST(tdt_watch(first, NULL) == 0);
		MUST(first > 0 || tdt__registry.watch_ns == 0);
		errno = 0;
		test_task_init(&task, NULL);
		MUST(errno == 0);
		MUST(tdt__registry.watch_ns == ns);
		test_task_poll(&task);
		trace = tdt_backtrace_last(task.handle);
		MUST((trace != NULL) == (ns != 0));
		tdt_trace_free(trace);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "TDT_WATCH=%s", text);
}

TEST(the_environment_has_tasks_watched_from_the_first_one_on)
{
	NOT_TRIED_IF(tdt__registry.slabs != 0, "a future was traced already");
	expect_of_environment("20ms", -1, 20000000);
	expect_of_environment("1ns", -1, TDT_WATCH_MIN_NS);
	expect_of_environment("", -1, 0);
	expect_of_environment("0", -1, 0);
	expect_of_environment("often", -1, 0);
	expect_of_environment("20ms", 5 * SECOND, 5 * SECOND);
	expect_of_environment("20ms", 0, 0);
}

CASE(kept)

TEST(a_tree_is_found_by_the_documented_layout_alone)
{
	const struct tdt_registry_watched *watched = NULL;
	const struct tdt_registry_entry *entries;
	const struct tdt_registry_tree *tree;
	uint64_t pcs[64];
	size_t n = 0;

	tdt_worker_now(1000);
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);
	test_task_poll(&task);
	tdt_worker_now(0);
	for (uint64_t at = tdt__registry.slabs; at != 0;) {
		const struct tdt_registry_slab *slab = (const void *)(uintptr_t)at;

		for (uint32_t i = 0; i < slab->used; i++) {
			const struct tdt_task_record *record =
			    (const void *)(uintptr_t)(slab->records +
						      (uint64_t)i * tdt__registry.stride);

			if (record->seq % 2 == 0 && record->id == tdt_handle_id(task.handle))
				watched = (const void *)(uintptr_t)record->tree;
		}
		at = slab->next;
	}
	ck_assert_ptr_nonnull(watched);
	tree = (const void *)((const char *)(watched + 1) +
			      (watched->published % 2) *
				  (sizeof *tree + watched->room * sizeof *entries));
	entries = (const void *)(tree + 1);
	ck_assert_uint_eq(tree->polls, 1);
	ck_assert_uint_eq(tree->gap, 0);
	ck_assert_uint_eq(tree->leaves, 1);
	ck_assert_uint_le(tree->n, watched->room);
	TRACE(trace, last_of(task.handle));
	n = tdt_trace_stack(trace, 0, pcs, 64, NULL);
	ck_assert_uint_eq(tree->n, n);
	ck_assert_uint_eq(entries[0].leaves & ~TDT_REGISTRY_GUESSED, 1);
	for (uint32_t i = 0, at = 0; i < n; i++, at = entries[at].parent)
		ck_assert_uint_eq(entries[at].pc, pcs[i]);
	ck_assert_uint_eq(entries[n - 1].parent, TDT_REGISTRY_TOP);
}

static const struct tdt_registry_tree *tree_of(const struct tdt_handle *task)
{
	const struct tdt_registry_watched *watched = (const void *)(uintptr_t)task->record.tree;
	const struct tdt_registry_tree *tree = (const void *)(watched + 1);

	if (watched->published % 2 == 0)
		return tree;
	return (const void *)((const char *)(tree + 1) +
			      watched->room * sizeof(struct tdt_registry_entry));
}

TEST(a_tree_has_the_gap_before_its_poll_and_the_tick_in_force)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 9);

	tdt_worker_now(1000);
	test_task_poll(&task);
	tdt_worker_now(4000);
	tdt__watch_pass(20 * SECOND);
	test_task_poll(&task);
	ck_assert_uint_eq(tree_of(task.handle)->polls, 2);
	ck_assert_uint_eq(tree_of(task.handle)->when, 4000);
	ck_assert_uint_eq(tree_of(task.handle)->gap, 3000);
	ck_assert_uint_eq(tree_of(task.handle)->tick, 20 * SECOND);
	tdt__watch_pass(3 * SECOND);
	tdt_worker_now(5000);
	test_task_poll(&task);
	ck_assert_uint_eq(tree_of(task.handle)->gap, 1000);
	ck_assert_uint_eq(tree_of(task.handle)->tick, 3 * SECOND);
	tdt_worker_now(0);
}
