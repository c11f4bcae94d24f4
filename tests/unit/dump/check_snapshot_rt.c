// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/snapshot, dump/request_all.  Snapshots of a runtime's tasks, while the tasks come and
 * go and others request them, and in a child of fork().
 */

#include <tdt/rt/sync.h>

#include "lib/leaf.h"
#include "lib/options.h"
#include "lib/rt.h"
#include "lib/test.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

static struct tdt_rt *rt;

static void start(unsigned workers)
{
	rt = rt_of(workers);
}

static void stop(void)
{
	tdt_rt_free(rt);
}

static void spawn(struct tdt_future future, const char *name)
{
	struct tdt_handle *handle;

	MUST(!tdt_future_is_none(&future));
	handle = tdt_rt_spawn(rt, future, TDT_TASK_ATTR(.name = name));
	MUST(handle != NULL);
	tdt_handle_unref(handle);
}

static const struct tdt_snapshot *take(int64_t timeout_ns)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = timeout_ns };

	return tdt_snapshot_take(&options);
}

/*
 * Take one that all `n` tasks have answered: a worker may be held up in the middle of a poll, which
 * is what is shown then.  Nor may that poll have begun before: so another is taken after such a
 * one.
 */
static const struct tdt_snapshot *take_fresh(size_t n)
{
	for (bool at_rest = true;;) {
		const struct tdt_snapshot *snapshot = take(50 * SECOND);
		bool fresh;

		ck_assert_ptr_nonnull(snapshot);
		ck_assert_uint_eq(
		    snapshot->fresh + snapshot->running, n);
		fresh = snapshot->fresh == n;
		if (fresh && at_rest)
			return snapshot;
		at_rest = fresh;
		tdt_snapshot_free(snapshot);
	}
}

/* --- All answer --------------------------------------------------------------------- */

#define MANY 10000

/*
 * See that all have answered, and that the tasks that could do so wait at one place.  Returns how
 * many of these were not `met`.
 */
static size_t meet_sleepers(const struct tdt_snapshot *snapshot, bool *met)
{
	size_t fresh = 0, running = snapshot->running, first_met = 0;

	for (size_t i = 0; i < snapshot->n_groups; i++) {
		const struct tdt_snapshot_group *group = snapshot->groups[i];

		for (size_t j = 0; j < group->n; j++)
			ck_assert(strcmp(group->tasks[j]->name, "sleeper") == 0);
		if (group->answer != TDT_ANSWER_FRESH)
			continue;
		ck_assert_uint_eq(fresh, 0);
		fresh = group->n;
		ck_assert_uint_eq(tdt_trace_info(group->trace)->leaves, 1);
		for (size_t j = 0; j < group->n; j++) {
			bool *this = &met[group->tasks[j]->id % MANY]; /* ids count up */

			first_met += !*this;
			*this = true;
		}
	}
	ck_assert_uint_eq(snapshot->fresh, fresh);
	ck_assert_uint_eq(fresh + running, MANY);
	if (running == 0)
		ck_assert_uint_eq(snapshot->n_groups, 1);
	return first_met;
}

CASE(workers)

/* Of so many there may always be one in whose poll a worker is held up: it is met the next time. */
TEST(ten_thousand_tasks_on_two_workers_are_one_group)
{
	static bool met[MANY];
	size_t n = 0;

	start(2);
	for (int i = 0; i < MANY; i++)
		spawn(tdt_sleep_ms(UINT64_MAX), "sleeper");
	while (n < MANY) {
		SNAPSHOT(snapshot, take(1000 * SECOND));

		n += meet_sleepers(snapshot, met);
	}
	stop();
}

/* --- A worker that is stuck ------------------------------------------------------------ */

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool is_stuck;

static tdt_poll_t stuck_poll(void *state, struct tdt_context *cx)
{
	atomic_store(&is_stuck, true);
	pthread_mutex_lock(&held);
	pthread_mutex_unlock(&held);
	return TDT_READY;
}

TEST(a_worker_that_is_stuck_delays_it_until_the_deadline)
{
	start(1);
	spawn(tdt_sleep_ms(UINT64_MAX), "sleeper");
	pthread_mutex_lock(&held);
	spawn((struct tdt_future){ NULL, stuck_poll, drop_nothing }, "stuck");
	UNTIL(atomic_load(&is_stuck));
	SNAPSHOT(snapshot, take(100 * MS));
	ck_assert_uint_eq(snapshot->tasks, 2);
	ck_assert_uint_eq(snapshot->fresh, 0);
	for (size_t i = 0; i < snapshot->n_groups; i++) {
		const struct tdt_task_info *info = snapshot->groups[i]->tasks[0];

		ck_assert_int_eq(info->state, strcmp(info->name, "stuck") == 0 ? TDT_TASK_RUNNING
									       : TDT_TASK_WAITING);
	}
	pthread_mutex_unlock(&held);
	stop();
}

/* --- Tasks that take turns --------------------------------------------------------------- */

static struct tdt_mutex *mutex;
static atomic_int arrived, slow_polls;

struct taking_turns {
	struct tdt_async async;
};

/*
 * The task never waits for long, but whenever it is looked at, it waits for the task that was
 * handed the mutex and has not had a poll yet.
 */
static tdt_poll_t take_turns(void *state, struct tdt_context *cx)
{
	struct taking_turns *task = state;

	TDT_BEGIN(&task->async, cx);
	atomic_fetch_add(&arrived, 1);
	for (;;) {
		TDT_AWAIT(tdt_mutex_lock(mutex));
		tdt_mutex_unlock(mutex);
	}
	TDT_END();
}

/* Have it be long until the others are polled again. */
static tdt_poll_t be_slow(void *state, struct tdt_context *cx)
{
	leaf_pause();
	atomic_fetch_add(&slow_polls, 1);
	tdt_waker_wake_by_ref(cx->waker);
	return TDT_PENDING;
}

TEST(tasks_that_hand_a_mutex_to_each_other_are_no_deadlock, .to = 2)
{
	struct tdt_task_filter filter = { .size = sizeof filter, .name = "turns" };
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 50 * SECOND };

	mutex = tdt_mutex_new();
	ck_assert_ptr_nonnull(mutex);
	start(1);
	if (_i == 0)
		options.filter = &filter;
	atomic_store(&arrived, 0);
	atomic_store(&slow_polls, 0);
	ck_assert(tdt_mutex_try_lock(mutex));
	for (int i = 0; i < 2; i++)
		spawn(TDT_ASYNC_NEW(take_turns, (struct taking_turns){ 0 }), "turns");
	UNTIL(atomic_load(&arrived) == 2);
	for (int i = 0; i < 4; i++)
		spawn((struct tdt_future){ NULL, be_slow, drop_nothing }, "slow");
	UNTIL(atomic_load(&slow_polls) > 0);
	ck_assert_int_eq(tdt_mutex_unlock(mutex), 0);
	for (int i = 0; i < 30; i++) {
		SNAPSHOT(snapshot, tdt_snapshot_take(&options));

		for (size_t j = 0; j < snapshot->n_cycles; j++)
			ck_assert_uint_eq(snapshot->cycles[j]->deadlock, 0);
	}
	stop();
	tdt_mutex_free(mutex);
}

/* --- However often ------------------------------------------------------------------------ */

static struct tdt_mutex *mutexes[2];

struct taking_both {
	struct tdt_async async;
	int first;
};

static tdt_poll_t take_both(void *state, struct tdt_context *cx)
{
	struct taking_both *task = state;

	TDT_BEGIN(&task->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutexes[task->first]));
	atomic_fetch_add(&arrived, 1);
	while (atomic_load(&arrived) < 2)
		TDT_AWAIT(tdt_yield_now());
	TDT_AWAIT(tdt_mutex_lock(mutexes[1 - task->first]));
	TDT_END();
}

TEST(a_deadlock_is_one_and_grows_older_however_often_it_is_looked_at)
{
	const struct tdt_snapshot *snapshot;
	bool is_deadlock = false;
	uint64_t age = 0;

	atomic_store(&arrived, 0);
	start(1);
	for (int i = 0; i < 2; i++) {
		mutexes[i] = tdt_mutex_new();
		ck_assert_ptr_nonnull(mutexes[i]);
	}
	for (int i = 0; i < 2; i++)
		spawn(TDT_ASYNC_NEW(take_both, (struct taking_both){ .first = i }), NULL);
	while (!is_deadlock) {
		snapshot = take_fresh(2);
		is_deadlock = snapshot->n_cycles > 0 && snapshot->cycles[0]->deadlock;
		tdt_snapshot_free(snapshot);
	}
	/* More often than what the records remember of polls can tell. */
	for (int i = 0; i < 600; i++) {
		snapshot = take_fresh(2);
		ck_assert_uint_eq(snapshot->n_cycles, 1);
		ck_assert_uint_eq(snapshot->cycles[0]->deadlock, 1);
		ck_assert_uint_ge(snapshot->cycles[0]->tasks[0]->state_ns, i == 0 ? 0 : age);
		age = snapshot->cycles[0]->tasks[0]->state_ns;
		tdt_snapshot_free(snapshot);
	}
	stop();
	for (int i = 0; i < 2; i++)
		tdt_mutex_free(mutexes[i]);
}

/* --- All at once ------------------------------------------------------------------------ */

#define SECONDS 2
#define LIVE 400

static unsigned seed;
static atomic_bool over;
static atomic_int live;
static atomic_long spawned, taken, answered, asked;
static __thread unsigned choices;

static bool one_in(unsigned n)
{
	return random_below(&choices, n) == 0;
}

/* Polls a future of the runtime, and counts itself out when it is dropped. */
struct task {
	struct tdt_future future;
	bool panics;
};

static __attribute__((noinline)) tdt_poll_t poll_one_way(struct task *task, struct tdt_context *cx)
{
	tdt_poll_t result = tdt_future_poll(&task->future, cx);

	TDT_KEEP_FRAME();
	return result;
}

static __attribute__((noinline)) tdt_poll_t poll_other_way(struct task *task,
							   struct tdt_context *cx)
{
	tdt_poll_t result = tdt_future_poll(&task->future, cx);

	TDT_KEEP_FRAME();
	return result;
}

static tdt_poll_t task_poll(void *state, struct tdt_context *cx)
{
	struct task *task = state;
	tdt_poll_t result = task->panics ? poll_one_way(task, cx) : poll_other_way(task, cx);

	return result == TDT_READY && task->panics ? TDT_PANICKED : result;
}

static void task_drop(void *state)
{
	struct task *task = state;

	tdt_future_drop(&task->future);
	free(task);
	atomic_fetch_sub(&live, 1);
}

static struct tdt_future new_task(void)
{
	struct task *task = malloc(sizeof *task);

	MUST(task != NULL);
	task->future = one_in(4) ? tdt_yield_now() : tdt_sleep_ms(random_below(&choices, 60));
	MUST(!tdt_future_is_none(&task->future));
	task->panics = one_in(3);
	atomic_fetch_add(&live, 1);
	return (struct tdt_future){ task, task_poll, task_drop };
}

static void *keep_spawning(void *argument)
{
	static const char *const names[] = { "tick", "tock", NULL };

	choices = seed + 7919 * (unsigned)(uintptr_t)argument;
	while (!atomic_load(&over)) {
		if (atomic_load(&live) > LIVE) {
			leaf_pause();
			continue;
		}
		if (one_in(8)) { /* one task in another */
			struct tdt_traced inner = tdt_traced(new_task());
			struct tdt_future both[2] = { inner.future, new_task() };

			MUST(inner.handle != NULL);
			tdt_handle_unref(inner.handle);
			spawn(tdt_join_all(both, 2), "both");
		} else {
			spawn(new_task(), names[random_below(&choices, 3)]);
		}
		atomic_fetch_add(&spawned, 1);
	}
	return NULL;
}

static void look_at(const struct tdt_snapshot *snapshot)
{
	size_t tasks = 0;

	for (size_t i = 0; i < snapshot->n_groups; i++) {
		const struct tdt_snapshot_group *group = snapshot->groups[i];

		MUST(group->n > 0 && (group->trace == NULL) == (group->answer == TDT_ANSWER_NONE));
		tasks += group->n;
		for (size_t j = 0; j < group->n; j++) {
			const struct tdt_task_info *info = group->tasks[j];

			MUST(info->state == group->tasks[0]->state);
			MUST(info->name == NULL || strcmp(info->name, "tick") == 0 ||
			     strcmp(info->name, "tock") == 0 || strcmp(info->name, "both") == 0);
			MUST(j == 0 || info->state_ns <= group->tasks[j - 1]->state_ns);
		}
		if (group->answer == TDT_ANSWER_FRESH)
			MUST(tdt_trace_stacks(group->trace) == group->tasks[0]->leaves);
		if (group->trace != NULL && one_in(50))
			MUST(tdt_trace_root(group->trace) != NULL);
	}
	MUST(tasks == snapshot->tasks);
	MUST(snapshot->lost == 0 && snapshot->n_cycles == 0);
	atomic_fetch_add(&taken, 1);
	atomic_fetch_add(&answered, (long)snapshot->fresh);
}

static void *take_on(void *argument)
{
	struct tdt_task_filter filter = { .size = sizeof filter, .name = "t[io]ck" };

	choices = seed + 7919 * (unsigned)(uintptr_t)argument;
	while (!atomic_load(&over)) {
		struct tdt_dump_options options = { .size = sizeof options };
		const struct tdt_snapshot *snapshot;

		options.timeout_ns = one_in(3) ? 1 + random_below(&choices, 1000000) : 10 * SECOND;
		options.max_frames = one_in(4) ? 2 : 0;
		options.filter = one_in(4) ? &filter : NULL;
		snapshot = tdt_snapshot_take(&options);
		MUST(snapshot != NULL);
		look_at(snapshot);
		tdt_snapshot_free(snapshot);
	}
	return NULL;
}

static int ask(struct tdt_handle *handle, const struct tdt_task_info *info, void *unused)
{
	struct tdt_trace *trace;

	if (!one_in(20))
		return atomic_load(&over);
	trace = backtrace_timed(handle, one_in(2) ? 10 * SECOND : 1);
	MUST(trace != NULL || errno == ETIMEDOUT || errno == ESRCH);
	tdt_trace_free(trace);
	atomic_fetch_add(&asked, 1);
	return atomic_load(&over);
}

static void *ask_on(void *argument)
{
	choices = seed + 7919 * (unsigned)(uintptr_t)argument;
	while (!atomic_load(&over))
		tdt_tasks(NULL, ask, NULL);
	return NULL;
}

TEST(tasks_come_and_go_and_are_asked_by_several_at_once)
{
	void *(*const work[])(void *) = { keep_spawning, keep_spawning, take_on, take_on, ask_on };
	pthread_t thread[5];

	seed = seed_of_run();
	start(2);
	for (uintptr_t i = 0; i < 5; i++)
		MUST(pthread_create(&thread[i], NULL, work[i], (void *)(i + 1)) == 0);
	sleep(SECONDS);
	UNTIL(atomic_load(&answered) > 0); /* and so one was taken */
	atomic_store(&over, true);
	threads_join(thread, 5);
	stop();
	printf("# %ld tasks, %ld snapshots with %ld answers, %ld asked alone\n", spawned, taken,
	       answered, asked);
	fflush(stdout);
	ck_assert_int_eq(live, 0);
	ck_assert_int_gt(taken, 0);
	ck_assert_int_gt(answered, 0);
}

/* --- Fork ----------------------------------------------------------------------------------- */

TEST(in_a_child_of_fork_it_ends_by_the_deadline)
{
	const struct tdt_snapshot *snapshot;

	start(2);
	for (int i = 0; i < 20; i++)
		spawn(tdt_sleep_ms(UINT64_MAX), NULL);
	tdt_snapshot_free(take_fresh(20)); /* so nobody is polled, or has a lock of an allocator */
	IN_A_CHILD {
		snapshot = take(50 * MS);
		MUST(snapshot != NULL && snapshot->tasks == 20 &&
		     snapshot->unanswered == 20);
		tdt_snapshot_free(snapshot);
	}
	stop();
}

static atomic_bool forked;

/* Takes the lock of the runtime's queue all the time. */
static void *wake_all(void *unused)
{
	while (!atomic_load(&forked))
		tdt_snapshot_free(take(SECOND));
	return unused;
}

TEST(in_a_child_of_a_busy_parent_it_ends_by_the_deadline)
{
	pthread_t thread[2];
	int status, ended = 0;
	pid_t child;

	NOT_TRIED_IF(ASAN || in_valgrind(),
		     "in a child AddressSanitizer's allocator may be locked, and valgrind finds "
		     "what the parent's threads had");
	start(2);
	for (int i = 0; i < 2000; i++)
		spawn(tdt_sleep_ms(UINT64_MAX), NULL);
	tdt_snapshot_free(take(SECOND));
	threads_start(thread, 2, wake_all, NULL);
	for (int i = 0; i < 50; i++) {
		child = fork();
		ck_assert_int_ge(child, 0);
		if (child == 0) {
			alarm(TSAN ? 5 : 0); /* see tsan_hung() */
			tdt_snapshot_free(take(5 * MS));
			_exit(0);
		}
		ck_assert_int_eq(waitpid(child, &status, 0), child);
		if (tsan_hung(status))
			continue;
		ck_assert_int_eq(status, 0);
		ended++;
	}
	ck_assert_int_gt(ended, 0);
	atomic_store(&forked, true);
	threads_join(thread, 2);
	stop();
}
