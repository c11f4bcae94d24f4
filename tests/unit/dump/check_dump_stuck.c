// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/request_all, dump/snapshot.  Dumps of a runtime with a worker that is blocked in a
 * system call show the task that blocks it, and all tasks that wait for that worker.
 */

#include <stdarg.h>

#include <tdt/rt/sync.h>

#include "lib/leaf.h"
#include "lib/options.h"
#include "lib/rt.h"
#include "lib/stuck_task.h"
#include "lib/test.h"

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

/* --- Tasks ------------------------------------------------------------------------ */

static struct tdt_rt *rt;
static struct tdt_mutex *mutex;
static int ends[2];
static struct stuck_task reader; /* only its `tid` */

static void start(unsigned workers)
{
	rt = rt_of(workers);
	mutex = tdt_mutex_new();
	ck_assert_ptr_nonnull(mutex);
	ck_assert_int_eq(pipe(ends), 0);
}

/* Lets the reader go. */
static void stop(void)
{
	close(ends[1]);
	tdt_rt_free(rt);
	close(ends[0]);
	tdt_mutex_free(mutex);
}

static __attribute__((noinline)) void read_reply(void)
{
	char byte;

	atomic_store(&reader.tid, (unsigned)gettid());
	MUST(read(ends[0], &byte, 1) == 0);
	TDT_KEEP_FRAME();
}

struct reading {
	struct tdt_async async;
};

/* Reads, with the mutex in its hands. */
static tdt_poll_t hold_and_read(void *state, struct tdt_context *cx)
{
	struct reading *reading = state;

	TDT_BEGIN(&reading->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutex));
	read_reply();
	tdt_mutex_unlock(mutex);
	TDT_END();
}

/* Returns when it is blocked. */
static struct tdt_handle *spawn_reader(void)
{
	struct tdt_handle *handle =
	    spawn_on(rt, TDT_ASYNC_NEW(hold_and_read, (struct reading){ 0 }), "holder");

	UNTIL(atomic_load(&reader.tid) != 0);
	stuck_task_settle(&reader, false);
	return handle;
}

static tdt_poll_t lock_in_turn(void *state, struct tdt_context *cx)
{
	struct reading *waiting = state;

	TDT_BEGIN(&waiting->async, cx);
	TDT_AWAIT(tdt_mutex_lock(mutex));
	tdt_mutex_unlock(mutex);
	TDT_END();
}

static atomic_int naps_begun;

static tdt_poll_t nap_over_and_over(void *state, struct tdt_context *cx)
{
	struct reading *napping = state;

	TDT_BEGIN(&napping->async, cx);
	atomic_fetch_add(&naps_begun, 1);
	for (;;)
		TDT_AWAIT(tdt_sleep_ms(2));
	TDT_END();
}

/* --- Dumps ------------------------------------------------------------------------- */

static const struct tdt_snapshot *take(int64_t timeout_ns)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = timeout_ns };
	const struct tdt_snapshot *snapshot = tdt_snapshot_take(&options);

	ck_assert_ptr_nonnull(snapshot);
	return snapshot;
}

#define LONGEST INT64_C(1000000000000) /* no machine is that slow */

/*
 * The same for more and more time, until it is seen that one task runs, and no more: one in a poll
 * that takes its time counts as well; and until there was time left for the last trees of so many.
 */
static const struct tdt_snapshot *take_with_runner(int64_t timeout_ns, size_t last)
{
	const struct tdt_snapshot *snapshot = take(timeout_ns);

	while ((snapshot->running != 1 || snapshot->last < last) && timeout_ns < LONGEST) {
		tdt_snapshot_free(snapshot);
		timeout_ns *= 2;
		snapshot = take(timeout_ns);
	}
	return snapshot;
}

/* Printed, for the caller to free. */
static char *text_of(const struct tdt_snapshot *snapshot)
{
	return TEXT_WRITTEN(file, ck_assert_int_eq(tdt_snapshot_print(snapshot, file, NULL), 0));
}

static void expect_in(const char *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void expect_in(const char *text, const char *format, ...)
{
	char expected[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(expected, sizeof expected, format, arguments);
	va_end(arguments);
	ck_assert_msg(strstr(text, expected) != NULL, "not \"%s\" in: %s", expected, text);
}

static const struct tdt_snapshot_group *group_of(const struct tdt_snapshot *snapshot,
						 enum tdt_answer answer)
{
	for (size_t i = 0; i < snapshot->n_groups; i++)
		if (snapshot->groups[i]->answer == answer)
			return snapshot->groups[i];
	ck_abort_msg("no task answered so");
	return NULL;
}

#define WAITERS 3

SUITE_SKIP(stuck_impossible())

CASE(stuck, .teardown = stop)

TEST(who_reads_with_a_mutex_in_its_hands_is_shown_and_named_by_who_waits)
{
	struct tdt_handle *holder, *waiter[WAITERS];
	const struct tdt_snapshot_group *runs, *wait;
	char *text, *path;

	start(2);
	holder = spawn_reader();
	for (int i = 0; i < WAITERS; i++)
		waiter[i] =
		    spawn_on(rt, TDT_ASYNC_NEW(lock_in_turn, (struct reading){ 0 }), "waiter");
	SNAPSHOT(snapshot, take_with_runner(30 * SECOND, 0));
	ck_assert_uint_eq(snapshot->running, 1);
	ck_assert_uint_eq(snapshot->fresh, WAITERS);
	ck_assert_uint_eq(snapshot->n_cycles, 0);

	runs = group_of(snapshot, TDT_ANSWER_RUNNING);
	ck_assert_uint_eq(runs->tasks[0]->id, tdt_handle_id(holder));
	ck_assert_int_eq(runs->tasks[0]->state, TDT_TASK_RUNNING);
	ck_assert_uint_eq(runs->tasks[0]->thread, atomic_load(&reader.tid));
	ck_assert_str_eq(runs->tasks[0]->syscall, "read");
	path = stuck_path(runs->trace);
	expect_in(path, "read_reply");
	wait = group_of(snapshot, TDT_ANSWER_FRESH);
	ck_assert_uint_eq(wait->n, WAITERS);
	for (int i = 0; i < WAITERS; i++)
		ck_assert_uint_eq(wait->tasks[i]->waits[0]->owner, tdt_handle_id(holder));

	text = text_of(snapshot);
	expect_in(text, "\ntask %" PRIu64 " \"holder\" running for ", tdt_handle_id(holder));
	expect_in(text, " on thread %u, in read()", atomic_load(&reader.tid));
	expect_in(text, "read_reply");
	expect_in(text, "\n   %d wait for a mutex (%p) held by task %" PRIu64 " \"holder\"\n",
		  WAITERS, (void *)mutex, tdt_handle_id(holder));
	free(text);
	free(path);
	tdt_handle_unref(holder);
	for (int i = 0; i < WAITERS; i++)
		tdt_handle_unref(waiter[i]);
}

static struct tdt_handle *to_abort;

static tdt_poll_t abort_it(void *state, struct tdt_context *cx)
{
	struct reading *aborting = state;

	TDT_BEGIN(&aborting->async, cx);
	ck_assert_int_eq(tdt_task_abort(to_abort), 0);
	TDT_END();
}

TEST(who_aborted_it_is_said_of_a_task_whose_poll_goes_on)
{
	const struct tdt_snapshot_group *runs;
	const struct tdt_snapshot *snapshot;
	struct tdt_handle *aborter;
	struct tdt_trace *trace;
	char *text;

	start(2);
	to_abort = spawn_reader();
	aborter = spawn_on(rt, TDT_ASYNC_NEW(abort_it, (struct reading){ 0 }), "aborter");
	ck_assert_int_eq(tdt_rt_block_on(rt, tdt_join(aborter, NULL)), 0);
	snapshot = take_with_runner(30 * SECOND, 0);
	runs = group_of(snapshot, TDT_ANSWER_RUNNING);
	ck_assert_uint_eq(runs->tasks[0]->id, tdt_handle_id(to_abort));
	trace = backtrace_timed(to_abort, 30 * SECOND);
	ck_assert_ptr_nonnull(trace);
	ck_assert_uint_eq(tdt_trace_info(trace)->aborted, 1);
	ck_assert_uint_eq(tdt_trace_info(trace)->woken_by, tdt_handle_id(aborter));
	tdt_trace_free(trace);
	text = text_of(snapshot);
	expect_in(text, ", aborted by task %" PRIu64 ",", tdt_handle_id(aborter));
	free(text);
	tdt_snapshot_free(snapshot);
	tdt_handle_unref(aborter);
	tdt_handle_unref(to_abort);
}

#define QUEUED 1000

static struct tdt_handle *queued[QUEUED];

static void start_naps(void)
{
	for (int i = 0; i < QUEUED; i++)
		queued[i] = spawn_on(rt, TDT_ASYNC_NEW(nap_over_and_over, (struct reading){ 0 }),
				     "napping");
	UNTIL(naps_begun == QUEUED); /* or else they are new, not runnable, behind what blocks */
}

static void end_naps(void)
{
	for (int i = 0; i < QUEUED; i++)
		tdt_handle_unref(queued[i]);
}

/* Wait until each task has a tree. */
static void until_all_are_watched(void)
{
	for (int i = 0; i < QUEUED; i++) {
		struct tdt_trace *trace;

		UNTIL((trace = tdt_backtrace_last(queued[i])) != NULL);
		tdt_trace_free(trace);
	}
}

static int count(struct tdt_handle *handle, const struct tdt_task_info *info, void *n)
{
	++*(int *)n;
	return 0;
}

static int tasks_in(enum tdt_task_state state)
{
	struct tdt_task_filter filter = { .size = sizeof filter, .states = 1u << state };
	int n = 0;

	MUST(tdt_tasks(&filter, count, &n) == 0);
	return n;
}

/* The naps are over, and no worker is there to poll the tasks. */
static void until_all_are_runnable(void)
{
	UNTIL(tasks_in(TDT_TASK_RUNNABLE) == QUEUED);
}

TEST(tasks_behind_one_that_blocks_their_worker_are_as_last_watched)
{
	const struct tdt_snapshot_group *last;
	struct tdt_handle *holder;

	start(1);
	ck_assert_int_eq(tdt_watch(TDT_WATCH_MIN_NS, NULL), 0);
	start_naps();
	until_all_are_watched();
	holder = spawn_reader();
	until_all_are_runnable();
	usleep(200000);
	SNAPSHOT(snapshot, take_with_runner(1000 * MS, QUEUED));
	ck_assert_uint_eq(snapshot->tasks, QUEUED + 1);
	ck_assert_uint_eq(snapshot->running, 1);
	ck_assert_uint_eq(snapshot->last, QUEUED);

	last = group_of(snapshot, TDT_ANSWER_LAST);
	ck_assert_uint_eq(last->n, QUEUED);
	for (int i = 0; i < QUEUED; i++) {
		ck_assert_int_eq(last->tasks[i]->state, TDT_TASK_RUNNABLE);
		ck_assert_uint_ge(last->tasks[i]->state_ns, 150 * MS);
		ck_assert_uint_eq(last->tasks[i]->leaves, 1);
		/*
		 * As of the dump's beginning, since when they can't have been polled; but for how
		 * coarse the clock is.
		 */
		ck_assert_uint_ge(last->tasks[i]->age_ns, 150 * MS);
	}
	TEXT(text, text_of(snapshot));
	expect_in(text, "1,001 tasks: 1 running, 1,000 as last watched (took");
	expect_in(text, "\n1,000 tasks runnable for ");
	expect_in(text, ", did not answer, as seen ");
	expect_in(text, " ago");
	expect_in(text, "nap_over_and_over");
	expect_in(text, "tdt_sleep_ms");
	tdt_watch(0, NULL);
	tdt_handle_unref(holder);
	end_naps();
}

TEST(tasks_behind_one_that_blocks_their_worker_are_listed_if_they_are_not_watched)
{
	struct tdt_handle *holder;

	start(1);
	start_naps();
	holder = spawn_reader();
	until_all_are_runnable();
	SNAPSHOT(snapshot, take_with_runner(200 * MS, 0));
	ck_assert_uint_eq(snapshot->tasks, QUEUED + 1);
	ck_assert_uint_eq(snapshot->running, 1);
	ck_assert_uint_eq(snapshot->unanswered, QUEUED);
	TEXT(text, text_of(snapshot));
	expect_in(text, "1,001 tasks: 1 running, 1,000 without a tree (took");
	expect_in(text, "\n1,000 tasks runnable for ");
	tdt_handle_unref(holder);
	end_naps();
}
