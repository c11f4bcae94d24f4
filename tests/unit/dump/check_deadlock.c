// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree/cycles, tree/findings, registry/owners, facts/proof.  Tasks of the runtime wait for
 * each other: a dump says that there is a deadlock if there is one, and only then.
 */

#include <stdarg.h>

#include <tdt/rt/sync.h>

#include "lib/request_waiting.h"
#include "lib/rt.h"
#include "lib/test.h"

#define SECOND INT64_C(1000000000)
#define MOST 3

/* --- Tasks ------------------------------------------------------------------------ */

/* Locks its own mutex, and when all have theirs it waits. */
struct actor {
	struct tdt_async async;
	struct tdt_future (*waits)(int i);
	int i;
};

static const char *const names[] = { "a", "b", "c" };
static struct tdt_rt *rt;
static struct tdt_mutex *mutex[MOST];
static struct tdt_handle *task[MOST];
static int actors;
/* Of those that have their mutex, and of the test, when all handles are there. */
static atomic_int ready;

static tdt_poll_t act(void *state, struct tdt_context *cx)
{
	struct actor *actor = state;

	TDT_BEGIN(&actor->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutex[actor->i]));
	atomic_fetch_add(&ready, 1);
	while (atomic_load(&ready) <= actors)
		TDT_AWAIT(tdt_yield_now());
	TDT_AWAIT(actor->waits(actor->i));
	TDT_END();
}

static uint64_t id(int i)
{
	return tdt_handle_id(task[i]);
}

static void start(void)
{
	rt = rt_of(2);
	for (int i = 0; i < MOST; i++) {
		mutex[i] = tdt_mutex_new();
		ck_assert_ptr_nonnull(mutex[i]);
	}
}

/* What is held is held by tasks that are gone. */
static void stop(void)
{
	tdt_rt_free(rt);
	for (int i = 0; i < MOST; i++) {
		tdt_handle_unref(task[i]);
		tdt_mutex_unlock(mutex[i]);
		tdt_mutex_free(mutex[i]);
	}
}

static int is_settled(struct tdt_handle *handle, const struct tdt_task_info *info, void *unused)
{
	return info->state == TDT_TASK_WAITING && info->n_waits != 0 &&
	       (info->waits[0]->kind == TDT_WAIT_TIMER || info->waits[0]->kind == TDT_WAIT_TASK ||
		info->waits[0]->kind == TDT_WAIT_MUTEX);
}

/* Return when all of them wait, and none is in a poll. */
static void settle(void)
{
	for (int i = 0; i < actors; i++)
		while (tdt_task_inspect(task[i], is_settled, NULL) == 0)
			sched_yield();
}

/* Tasks "a", "b"..., each of which waits so: when this returns they do. */
static void act_all(int n, struct tdt_future (*const waits[])(int i))
{
	start();
	actors = n;
	atomic_store(&ready, 0);
	for (int i = 0; i < n; i++)
		task[i] = spawn_on(
		    rt, TDT_ASYNC_NEW(act, (struct actor){ .waits = waits[i], .i = i }), names[i]);
	while (atomic_load(&ready) < n)
		sched_yield();
	atomic_fetch_add(&ready, 1);
	settle();
}

/* What they may wait for. */

static int next(int i)
{
	return (i + 1) % actors;
}

static struct tdt_future lock_next(int i)
{
	return tdt_mutex_lock(mutex[next(i)]);
}

static struct tdt_future lock_own(int i)
{
	return tdt_mutex_lock(mutex[i]);
}

static struct tdt_future join_next(int i)
{
	return tdt_join(task[next(i)], NULL);
}

static struct tdt_future join_itself(int i)
{
	return tdt_join(task[i], NULL);
}

static struct tdt_future join_all_others(int i)
{
	struct tdt_future both[2] = { lock_next(i), tdt_join(task[next(next(i))], NULL) };

	return tdt_join_all(both, 2);
}

static struct tdt_future lock_next_for_a_while(int i)
{
	return tdt_timeout_ms(lock_next(i), UINT64_MAX, NULL);
}

static struct tdt_future lock_next_or_sleep(int i)
{
	struct tdt_future either[2] = { lock_next(i), tdt_sleep_ms(UINT64_MAX) };

	return tdt_select(either, 2, NULL);
}

static struct tdt_future sleep_long(int i)
{
	return tdt_sleep_ms(UINT64_MAX);
}

static struct tdt_future lock_first(int i)
{
	return tdt_mutex_lock(mutex[0]);
}

/* --- Dumps ------------------------------------------------------------------------- */

static const struct tdt_snapshot *take(void)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 50 * SECOND };
	const struct tdt_snapshot *snapshot = tdt_snapshot_take(&options);

	MUST(snapshot != NULL);
	return snapshot;
}

/*
 * Every task says where it waits.  One that is held up in the poll that is to answer has its stack
 * read instead: then all are requested again, when that poll is over.
 */
static const struct tdt_snapshot *take_waiting(void)
{
	const struct tdt_snapshot *snapshot = take();

	while (snapshot->running != 0) {
		tdt_snapshot_free(snapshot);
		settle();
		snapshot = take();
	}
	return snapshot;
}

/* There is one ring, of all tasks, and it is a deadlock or not. */
static void expect_ring(bool deadlock)
{
	SNAPSHOT(snapshot, take_waiting());
	const struct tdt_snapshot_cycle *ring;

	ck_assert_uint_eq(snapshot->n_cycles, 1);
	ring = snapshot->cycles[0];
	ck_assert_uint_eq(ring->n, actors);
	ck_assert_int_eq(ring->deadlock, deadlock);
	for (int i = 0; i < actors; i++) {
		ck_assert_uint_eq(ring->tasks[i]->id, id(i));
		ck_assert_str_eq(ring->tasks[i]->name, names[i]);
	}
}

static void expect_no_ring(void)
{
	SNAPSHOT(snapshot, take_waiting());

	ck_assert_uint_eq(snapshot->n_cycles, 0);
}

/* A dump has these lines, each whole. */
static void expect_text(const char *expected, ...) __attribute__((format(printf, 1, 2)));
static void expect_text(const char *expected, ...)
{
	SNAPSHOT(snapshot, take_waiting());
	WRITTEN(text, file, MUST(tdt_snapshot_print(snapshot, file, NULL) == 0));
	char line[512];
	va_list arguments;

	va_start(arguments, expected);
	vsnprintf(line, sizeof line, expected, arguments);
	va_end(arguments);
	ck_assert_msg(strstr(text, line) != NULL, "not \"%s\" in: %s", line, text);
}

CASE(deadlocks, .teardown = stop)

TEST(two_that_lock_each_others_mutex)
{
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next, lock_next });
	expect_ring(true);
	SNAPSHOT(snapshot, take_waiting());
	for (int i = 0; i < 2; i++) {
		const struct tdt_task_info *info = snapshot->cycles[0]->tasks[i];

		ck_assert_uint_eq(info->n_waits, 1);
		ck_assert_uint_eq(info->waits[0]->kind, TDT_WAIT_MUTEX);
		ck_assert_uint_eq(info->waits[0]->object, (uintptr_t)mutex[!i]);
		ck_assert_uint_eq(info->waits[0]->owner, id(!i));
	}
	expect_text("2 tasks, 1 deadlock: 2 answered");
	expect_text("\ndeadlock: task %" PRIu64
		    " \"a\" waits for a mutex (%p) held by task %" PRIu64
		    " \"b\", which waits for a mutex (%p) held by task %" PRIu64 " \"a\"\n",
		    id(0), (void *)mutex[1], id(1), (void *)mutex[0], id(0));
}

TEST(three_that_lock_the_next_ones_mutex)
{
	act_all(3, (struct tdt_future(*const[])(int)){ lock_next, lock_next, lock_next });
	expect_ring(true);
	expect_text(
	    "\ndeadlock: task %" PRIu64 " \"a\" waits for a mutex (%p) held by task %" PRIu64
	    " \"b\", which waits for a mutex (%p) held by task %" PRIu64
	    " \"c\", which waits for a mutex (%p) held by task %" PRIu64 " \"a\"\n",
	    id(0), (void *)mutex[1], id(1), (void *)mutex[2], id(2), (void *)mutex[0], id(0));
}

TEST(two_that_await_each_others_end)
{
	act_all(2, (struct tdt_future(*const[])(int)){ join_next, join_next });
	expect_ring(true);
	expect_text("\ndeadlock: task %" PRIu64 " \"a\" waits for task %" PRIu64
		    " \"b\", which waits for task %" PRIu64 " \"a\"\n",
		    id(0), id(1), id(0));
}

TEST(a_mutex_and_an_end)
{
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next, join_next });
	expect_ring(true);
	expect_text("\ndeadlock: task %" PRIu64
		    " \"a\" waits for a mutex (%p) held by task %" PRIu64
		    " \"b\", which waits for task %" PRIu64 " \"a\"\n",
		    id(0), (void *)mutex[1], id(1), id(0));
}

TEST(one_that_awaits_its_own_end)
{
	act_all(1, (struct tdt_future(*const[])(int)){ join_itself });
	expect_ring(true);
	expect_text("\ndeadlock: task %" PRIu64 " \"a\" waits for itself\n", id(0));
}

TEST(one_that_locks_its_own_mutex)
{
	act_all(1, (struct tdt_future(*const[])(int)){ lock_own });
	expect_ring(true);
	expect_text("\ndeadlock: task %" PRIu64 " \"a\" waits for a mutex (%p) held by itself\n",
		    id(0), (void *)mutex[0]);
}

/* "a" waits for both others, and each of them for it: the ring that is told is of two. */
TEST(one_that_waits_for_several_which_all_wait_for_it)
{
	act_all(3, (struct tdt_future(*const[])(int)){ join_all_others, lock_first, lock_first });
	SNAPSHOT(snapshot, take_waiting());
	ck_assert_uint_eq(snapshot->n_cycles, 1);
	ck_assert(snapshot->cycles[0]->deadlock);
	ck_assert_uint_eq(snapshot->cycles[0]->n, 2);
	ck_assert_uint_eq(snapshot->cycles[0]->tasks[0]->id, id(0));
	ck_assert_uint_eq(snapshot->cycles[0]->tasks[0]->n_waits, 2);
}

/* Whether the last watched tree of a task is of its last poll, which a busy machine may miss. */
static bool has_fresh_tree(struct tdt_handle *handle)
{
	struct tdt_trace *trace = tdt_backtrace_last(handle);
	bool fresh = trace != NULL && tdt_trace_info(trace)->polls_since == 0;

	tdt_trace_free(trace);
	return fresh;
}

/* The trace of one task says the same as the dump of all. */
static void expect_owner_named(struct tdt_trace *trace)
{
	char *text = TEXT_WRITTEN(file, MUST(tdt_trace_print(trace, file) == 0)), line[128];

	snprintf(line, sizeof line, "\n   waits for a mutex (%p) held by task %" PRIu64 " \"b\"\n",
		 (void *)mutex[1], id(1));
	ck_assert_msg(strstr(text, line) != NULL, "not \"%s\" in: %s", line, text);
	free(text);
	tdt_trace_free(trace);
}

TEST(a_trace_names_the_task_that_holds_the_mutex)
{
	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next, lock_next });
	/* Of polls in one interval only the first one has its tree kept. */
	do
		expect_owner_named(request_waiting(task[0]));
	while (!has_fresh_tree(task[0]));
	expect_owner_named(tdt_backtrace_last(task[0]));
	tdt_watch(0, NULL);
}

CASE(none, .teardown = stop)

TEST(a_ring_with_a_limit_of_time_is_no_deadlock)
{
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next_for_a_while, lock_next });
	expect_ring(false);
	expect_text("\nring of waits (another leaf may still bring one on): task %" PRIu64
		    " \"a\" waits",
		    id(0));
}

TEST(a_ring_with_a_sleep_beside_is_no_deadlock)
{
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next, lock_next_or_sleep });
	expect_ring(false);
}

TEST(a_ring_with_one_that_waits_for_a_sleeper_too_is_no_deadlock)
{
	act_all(3, (struct tdt_future(*const[])(int)){ join_all_others, lock_first, sleep_long });
	SNAPSHOT(snapshot, take_waiting());
	ck_assert_uint_eq(snapshot->n_cycles, 1);
	ck_assert(!snapshot->cycles[0]->deadlock);
	ck_assert_uint_eq(snapshot->cycles[0]->n, 2);
}

TEST(who_waits_for_one_that_sleeps_is_in_no_ring)
{
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next, sleep_long });
	expect_no_ring();
	expect_text("\n   waits for a mutex (%p) held by task %" PRIu64 " \"b\"\n",
		    (void *)mutex[1], id(1));
}

static tdt_poll_t hold_last(void *state, struct tdt_context *cx)
{
	return tdt_mutex_try_lock(mutex[MOST - 1]) ? TDT_READY : TDT_PANICKED;
}

TEST(a_mutex_that_is_held_by_no_task_is_in_no_ring, .to = 2)
{
	/* 0: a thread took it, 1: a task that has ended */
	struct tdt_handle *gone = NULL;
	uint64_t owner = 0;

	act_all(2, (struct tdt_future(*const[])(int)){ lock_next, sleep_long });
	if (_i == 0) {
		ck_assert(tdt_mutex_try_lock(mutex[MOST - 1]));
	} else {
		gone = spawn_on(rt, (struct tdt_future){ NULL, hold_last, drop_nothing }, "gone");
		ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(gone, NULL)), 0);
		owner = tdt_handle_id(gone);
	}
	tdt_handle_unref(spawn_on(rt, tdt_mutex_lock(mutex[MOST - 1]), "late"));
	expect_no_ring();
	if (owner == 0)
		expect_text("\n   waits for a mutex (%p)\n", (void *)mutex[MOST - 1]);
	else
		expect_text("\n   waits for a mutex (%p) held by task %" PRIu64,
			    (void *)mutex[MOST - 1], owner);
	tdt_handle_unref(gone);
}

/* --- While all workers are held up ------------------------------------------------------------ */

static int ends[2];
static atomic_int held_up; /* workers */

static tdt_poll_t hold_up(void *state, struct tdt_context *cx)
{
	char byte;

	atomic_fetch_add(&held_up, 1);
	MUST(read(ends[0], &byte, 1) == 1);
	return TDT_READY;
}

static void hold_up_workers(struct tdt_handle *blocker[2])
{
	atomic_store(&held_up, 0);
	MUST(pipe(ends) == 0);
	for (int i = 0; i < 2; i++)
		blocker[i] =
		    spawn_on(rt, (struct tdt_future){ NULL, hold_up, drop_nothing }, "blocker");
	while (atomic_load(&held_up) < 2)
		sched_yield();
}

static void let_workers_go(struct tdt_handle *blocker[2])
{
	MUST(write(ends[1], "xx", 2) == 2);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(blocker[i], NULL)), 0);
		tdt_handle_unref(blocker[i]);
	}
	for (int i = 0; i < 2; i++)
		close(ends[i]);
}

/*
 * The snapshot while both workers are held up: the actors don't answer in time.  It shows the last
 * trees of `trees` tasks at least, if need be within more time: on a busy machine none may be left
 * for them.
 */
static const struct tdt_snapshot *take_held_up_within(int64_t timeout_ns, size_t trees)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = timeout_ns };
	struct tdt_handle *blocker[2];
	const struct tdt_snapshot *snapshot;

	hold_up_workers(blocker);
	for (;; options.timeout_ns *= 2) {
		snapshot = tdt_snapshot_take(&options);
		MUST(snapshot != NULL);
		ck_assert_uint_eq(snapshot->fresh, 0);
		if (snapshot->last >= trees)
			break;
		tdt_snapshot_free(snapshot);
	}
	let_workers_go(blocker);
	return snapshot;
}

static void expect_ring_held_up(size_t trees, bool deadlock, bool unproven)
{
	SNAPSHOT(snapshot, take_held_up_within(SECOND / 5, trees));

	ck_assert_uint_eq(snapshot->n_cycles, 1);
	ck_assert_uint_eq(snapshot->cycles[0]->n, actors);
	ck_assert_int_eq(snapshot->cycles[0]->deadlock, deadlock);
	ck_assert_int_eq(snapshot->cycles[0]->unproven, unproven);
}

CASE(held)

static struct tdt_future (*const pairs[][2])(int) = { { lock_next, lock_next },
						      { join_next, join_next },
						      { lock_next, join_next } };

TEST(last_trees_prove_a_deadlock_while_all_workers_are_held_up, .to = 3)
{
	bool fresh;

	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
	do {
		act_all(2, pairs[_i]);
		fresh = has_fresh_tree(task[0]) && has_fresh_tree(task[1]);
		if (fresh)
			expect_ring_held_up(2, true, false);
		stop();
	} while (!fresh);
	tdt_watch(0, NULL);
}

TEST(without_trees_a_deadlock_is_unproven_while_all_workers_are_held_up, .to = 3)
{
	act_all(2, pairs[_i]);
	expect_ring_held_up(0, false, true);
	/* The polls that were requested while the workers were held up may still be to come. */
	tdt_snapshot_free(take_waiting());
	expect_ring(true);
	stop();
}

TEST(a_ring_with_a_limit_of_time_is_none_while_all_workers_are_held_up)
{
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next_for_a_while, lock_next });
	expect_ring_held_up(0, false, false);
	stop();
}

/* A leaf that reports nothing. */
static tdt_poll_t wait_silently(void *state, struct tdt_context *cx)
{
	const struct tdt_waker **waker = state;

	if (*waker != NULL)
		tdt_waker_drop(*waker);
	*waker = tdt_waker_clone(cx->waker);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}

static void forget_waker(void *state)
{
	const struct tdt_waker **waker = state;

	tdt_waker_drop(*waker);
	*waker = NULL;
}

static struct tdt_future lock_next_or_wait_silently(int i)
{
	static const struct tdt_waker *waker[MOST];
	struct tdt_future either[2] = { lock_next(i), { &waker[i], wait_silently, forget_waker } };

	return tdt_select(either, 2, NULL);
}

TEST(a_last_tree_shows_the_leaves_that_a_record_does_not)
{
	bool fresh;

	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
	do {
		act_all(
		    2, (struct tdt_future(*const[])(int)){ lock_next_or_wait_silently, lock_next });
		fresh = has_fresh_tree(task[0]);
		if (fresh)
			expect_ring_held_up(1, false, false);
		stop();
	} while (!fresh);
	tdt_watch(0, NULL);
}

TEST(a_leaf_that_reports_nothing_may_still_let_an_unproven_ring_go_on)
{
	act_all(2, (struct tdt_future(*const[])(int)){ lock_next_or_wait_silently, lock_next });
	expect_ring_held_up(0, false, true);
	tdt_snapshot_free(take_waiting());
	expect_ring(false); /* when its tasks answer */
	stop();
}

/* What the tasks do one after the other, each when it is its turn. */
static atomic_int turn;

struct passing {
	struct tdt_async async;
	int i;
};

struct turn {
	struct tdt_async async;
	int wanted;
};

static tdt_poll_t await_turn(void *state, struct tdt_context *cx)
{
	struct turn *awaited = state;

	TDT_BEGIN(&awaited->async, cx);
	while (atomic_load(&turn) < awaited->wanted)
		TDT_AWAIT(tdt_yield_now());
	TDT_END();
}

static struct tdt_future until_turn(int wanted)
{
	return TDT_ASYNC_NEW(await_turn, (struct turn){ .wanted = wanted });
}

/* Takes mutex 1, hands it on at turn 3, and then waits for mutex 0. */
static tdt_poll_t hand_on(void *state, struct tdt_context *cx)
{
	struct passing *passing = state;

	TDT_BEGIN(&passing->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutex[1]));
	TDT_AWAIT(until_turn(3));
	tdt_mutex_unlock(mutex[1]);
	TDT_AWAIT(tdt_mutex_lock(mutex[0]));
	TDT_END();
}

/* At turn 1, is the first in the line for mutex 1, and keeps it. */
static tdt_poll_t be_first(void *state, struct tdt_context *cx)
{
	struct passing *passing = state;

	TDT_BEGIN(&passing->async, cx);
	TDT_AWAIT(until_turn(1));
	TDT_AWAIT(tdt_mutex_lock(mutex[1]));
	TDT_AWAIT(tdt_sleep_ms(UINT64_MAX));
	TDT_END();
}

/* Holds mutex 0; at turn 2, is the second in the line for mutex 1. */
static tdt_poll_t be_second(void *state, struct tdt_context *cx)
{
	struct passing *passing = state;

	TDT_BEGIN(&passing->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutex[0]));
	TDT_AWAIT(until_turn(2));
	TDT_AWAIT(tdt_mutex_lock(mutex[1]));
	TDT_END();
}

static int waits_for(struct tdt_handle *handle, const struct tdt_task_info *info, void *kind)
{
	return info->state == TDT_TASK_WAITING && info->n_waits != 0 &&
	       info->waits[0]->kind == *(enum tdt_wait_kind *)kind;
}

static void until_it_waits_for(struct tdt_handle *handle, enum tdt_wait_kind kind)
{
	while (tdt_task_inspect(handle, waits_for, &kind) == 0)
		sched_yield();
}

/*
 * The second in line was told that a task holds the mutex which has handed it on since, and which
 * now waits for the second: a ring of what was once true.
 */
TEST(a_mutex_that_was_handed_on_makes_no_deadlock_of_old_reports, .to = 2)
{
	/* 1: so late that the snapshot does not look at the tasks again */
	const int64_t timeout_ns = _i == 0 ? SECOND / 5 : 1;

	start();
	actors = 3;
	task[0] = spawn_on(rt, TDT_ASYNC_NEW(hand_on, (struct passing){ 0 }), "a");
	task[1] = spawn_on(rt, TDT_ASYNC_NEW(be_first, (struct passing){ 0 }), "b");
	task[2] = spawn_on(rt, TDT_ASYNC_NEW(be_second, (struct passing){ 0 }), "c");
	while (tdt_mutex_try_lock(mutex[1])) {
		tdt_mutex_unlock(mutex[1]);
		sched_yield();
	}
	atomic_store(&turn, 1);
	until_it_waits_for(task[1], TDT_WAIT_MUTEX);
	atomic_store(&turn, 2);
	until_it_waits_for(task[2], TDT_WAIT_MUTEX);
	atomic_store(&turn, 3);
	until_it_waits_for(task[0], TDT_WAIT_MUTEX);
	until_it_waits_for(task[1], TDT_WAIT_TIMER);
	SNAPSHOT(snapshot, take_held_up_within(timeout_ns, 0));
	/* The lock says by now who has it. */
	ck_assert_uint_eq(snapshot->n_cycles, 0);
	expect_no_ring();
	stop();
}

/* --- Locks that pass from one to another ------------------------------------------------------ */

#define DUMPS ((int)times_here(200))
#define TASKS 8

static unsigned seed;
static atomic_uint chosen;
static atomic_bool over;

static unsigned choose(unsigned n)
{
	unsigned state = seed + 7919 * atomic_fetch_add(&chosen, 1);

	random_below(&state, n);
	return random_below(&state, n);
}

/* Two mutexes at a time, always in the same order: so nobody ever waits for ever. */
struct churning {
	struct tdt_async async;
	unsigned first, second;
	bool yields;
};

static tdt_poll_t churn(void *state, struct tdt_context *cx)
{
	struct churning *churning = state;

	TDT_BEGIN(&churning->async, cx);
	while (!atomic_load(&over)) {
		churning->first = choose(MOST - 1);
		churning->second = churning->first + 1 + choose(MOST - 1 - churning->first);
		churning->yields = choose(2);
		TDT_AWAIT(tdt_mutex_lock(mutex[churning->first]));
		if (churning->yields)
			TDT_AWAIT(tdt_yield_now());
		TDT_AWAIT(tdt_mutex_lock(mutex[churning->second]));
		if (choose(8) == 0)
			TDT_AWAIT(tdt_sleep_ms(1));
		/* Each is free, or has another holder, before the other is. */
		tdt_mutex_unlock(mutex[churning->yields ? churning->first : churning->second]);
		tdt_mutex_unlock(mutex[churning->yields ? churning->second : churning->first]);
	}
	TDT_END();
}

/* All of these tasks take what they are handed. */
static void no_futurelock(const struct tdt_snapshot *snapshot)
{
	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++) {
			const struct tdt_task_info *info = snapshot->groups[i]->tasks[k];

			for (uint32_t j = 0; j < info->n_waits; j++)
				MUST(info->waits[j]->futurelock == 0);
		}
}

/* Snapshots while tasks hold up the workers for a while, wherever the others are. */
static void dump_held_up(atomic_long *rings)
{
	for (int i = 0; i < (DUMPS + 9) / 10; i++) {
		SNAPSHOT(snapshot, take_held_up_within(SECOND / 5, 0));

		for (size_t j = 0; j < snapshot->n_cycles; j++)
			MUST(!snapshot->cycles[j]->deadlock);
		no_futurelock(snapshot);
		atomic_fetch_add(rings, (long)snapshot->n_cycles);
	}
}

static void *dump_often(void *rings)
{
	for (int i = 0; i < DUMPS; i++) {
		SNAPSHOT(snapshot, take());

		for (size_t j = 0; j < snapshot->n_cycles; j++)
			MUST(!snapshot->cycles[j]->deadlock);
		no_futurelock(snapshot);
		atomic_fetch_add((atomic_long *)rings, (long)snapshot->n_cycles);
	}
	return NULL;
}

CASE(churns, .teardown = stop)

TEST(locks_that_are_handed_on_meanwhile_are_no_deadlock, .to = 3)
{
	/* 0: one dumps, 1: two at once, 2: while the workers are held up */
	struct tdt_handle *handle[TASKS];
	atomic_long rings = 0;
	pthread_t thread;

	seed = seed_of_run();
	start();
	for (int i = 0; i < TASKS; i++)
		handle[i] =
		    spawn_on(rt, TDT_ASYNC_NEW(churn, (struct churning){ .first = 0 }), NULL);
	if (_i == 1)
		ck_assert_int_eq(pthread_create(&thread, NULL, dump_often, &rings), 0);
	if (_i == 2)
		dump_held_up(&rings);
	else
		dump_often(&rings);
	if (_i == 1)
		pthread_join(thread, NULL);
	atomic_store(&over, true);
	for (int i = 0; i < TASKS; i++) {
		ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(handle[i], NULL)), 0);
		tdt_handle_unref(handle[i]);
	}
	printf("# %ld rings of what was said at different times\n", atomic_load(&rings));
	fflush(stdout);
}

static void *dump_until_found(void *found)
{
	for (int i = 0; i < DUMPS || *(int *)found == 0; i++) {
		SNAPSHOT(snapshot, take());

		MUST(snapshot->n_cycles <= 1);
		if (snapshot->n_cycles == 1)
			*(int *)found += snapshot->cycles[0]->deadlock;
	}
	return NULL;
}

/*
 * A dump may meet one of them just when it is polled for the other's: then a later one finds the
 * deadlock.
 */
TEST(two_who_dump_at_once_find_it)
{
	int found[2] = { 0 };
	pthread_t thread;

	act_all(2, (struct tdt_future(*const[])(int)){ lock_next, lock_next });
	ck_assert_int_eq(pthread_create(&thread, NULL, dump_until_found, &found[1]), 0);
	dump_until_found(&found[0]);
	pthread_join(thread, NULL);
	printf("# %d and %d dumps found it\n", found[0], found[1]);
	fflush(stdout);
	/*
	 * A requested poll, whose requester has read another meanwhile, may be still to
	 * come: it answers this.
	 */
	tdt_snapshot_free(take_waiting());
	expect_ring(true);
}
