// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers dump/snapshot, dump/request_all, tree/groups.  Snapshots of tasks on the thread that takes
 * them, and of tasks that don't answer.
 */

#include <dlfcn.h>

#include <tdt/integrate/hooks.h>

#include "lib/listed.h"
#include "lib/poll_now.h"
#include "lib/requester.h"
#include "lib/test.h"
#include "watch/watch.h"

#define MS INT64_C(1000000)
#define SECOND INT64_C(1000000000)

/* --- Tasks --------------------------------------------------------------------- */

/* What a task of these tests does; all zero: it waits. */
struct job {
	struct poll_now task;
	bool ready; /* a poll ends it */
	int sleep_ms;
	void (*act)(void);
	tdt_poll_t (*await)(void *state, struct tdt_context *cx); /* NULL: nothing */
	uint64_t awaits[2]; /* tasks, each by a leaf of its own; 0: none */
	int leaves;         /* more of them, that don't say what they wait for */
};

static void clone_here(struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
}

static __attribute__((noinline)) void await_task(struct tdt_context *cx, uint64_t id)
{
	clone_here(cx);
	tdt_leaf_waits_on(TDT_WAIT_TASK, NULL, id);
	TDT_KEEP_FRAME();
}

static tdt_poll_t work(struct job *job, struct tdt_context *cx)
{
	if (job->ready)
		return TDT_READY;
	for (int i = 0; i < 2; i++)
		if (job->awaits[i] != 0)
			await_task(cx, job->awaits[i]);
	for (int i = 0; i < job->leaves; i++)
		clone_here(cx);
	if (job->sleep_ms != 0)
		nanosleep(&(struct timespec){ 0, job->sleep_ms * MS }, NULL);
	if (job->act != NULL)
		job->act();
	if (job->await != NULL)
		job->await(NULL, cx);
	return TDT_PENDING;
}

static __attribute__((noinline)) tdt_poll_t poll_a(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = work(state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static __attribute__((noinline)) tdt_poll_t poll_b(void *state, struct tdt_context *cx)
{
	tdt_poll_t result = work(state, cx);

	TDT_KEEP_FRAME();
	return result;
}

static void start(struct job *job, tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	job->leaves = job->leaves == 0 && job->awaits[0] == 0 ? 1 : job->leaves;
	poll_now_start(&job->task, future_of(poll, job));
}

static int64_t coarse_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

/*
 * Sleep for some 30 ms, by the clock that polls are stamped with too: it may stand still for a
 * while.
 */
static void grow_older(void)
{
	int64_t before = coarse_now();

	do
		nanosleep(&(struct timespec){ 0, 30 * MS }, NULL);
	while (coarse_now() - before < 20 * MS);
}

static uint64_t id_of(const struct job *job)
{
	return tdt_handle_id(job->task.traced.handle);
}

static void end(struct job *job)
{
	ck_assert_int_eq(listed(job->task.traced.handle), 0);
	poll_now_end(&job->task);
}

/*
 * Take one that gives up after `timeout_ns`; 0: late enough for all to answer, however slow the
 * machine is.
 */
static const struct tdt_snapshot *take(int64_t timeout_ns)
{
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns =
						timeout_ns != 0 ? timeout_ns : 50 * SECOND };
	const struct tdt_snapshot *snapshot = tdt_snapshot_take(&options);
	size_t tasks = 0, of_deadlocks = 0;

	ck_assert_ptr_nonnull(snapshot);
	ck_assert_uint_eq(snapshot->size, sizeof *snapshot);
	for (size_t i = 0; i < snapshot->n_cycles; i++)
		of_deadlocks += snapshot->cycles[i]->n_groups;
	for (size_t i = 0; i < snapshot->n_groups; i++) {
		const struct tdt_snapshot_group *group = snapshot->groups[i];
		const struct tdt_snapshot_group *before = snapshot->groups[i > 0 ? i - 1 : 0];

		ck_assert_uint_ge(group->n, 1);
		ck_assert_int_eq(group->trace == NULL, group->answer == TDT_ANSWER_NONE);
		tasks += group->n;
		for (size_t j = 1; j < group->n; j++)
			ck_assert(group->tasks[j - 1]->state_ns >= group->tasks[j]->state_ns);
		if (i > of_deadlocks && before->tasks[0]->state == group->tasks[0]->state)
			ck_assert(before->tasks[0]->state_ns >= group->tasks[0]->state_ns);
	}
	ck_assert_uint_eq(tasks, snapshot->tasks);
	return snapshot;
}

#define LONGEST INT64_C(1000000000000) /* no machine is that slow */

/*
 * Take one that has trees of so many tasks: within `timeout_ns`, or more on a machine that is too
 * slow.
 */
static const struct tdt_snapshot *take_with(size_t trees, int64_t timeout_ns)
{
	const struct tdt_snapshot *snapshot = take(timeout_ns);

	while (snapshot->fresh + snapshot->last < trees && timeout_ns < LONGEST) {
		tdt_snapshot_free(snapshot);
		timeout_ns *= 4;
		snapshot = take(timeout_ns);
	}
	return snapshot;
}

CASE(answers)

TEST(without_tasks_it_is_empty)
{
	SNAPSHOT(snapshot, take(0));

	ck_assert(snapshot->tasks == 0 && snapshot->n_groups == 0 && snapshot->n_cycles == 0 &&
		  snapshot->lost == 0);
	tdt_snapshot_free(NULL);
}

TEST(tasks_that_wait_at_the_same_places_are_one_group)
{
	struct job job[6] = { 0 };

	for (int i = 0; i < 6; i++) {
		tdt_worker_now(1000); /* all are of one age */
		start(&job[i], i % 3 == 2 ? poll_b : poll_a);
	}
	tdt_worker_now(0);
	SNAPSHOT(snapshot, take(0));
	ck_assert_uint_eq(snapshot->tasks, 6);
	ck_assert_uint_eq(snapshot->fresh, 6);
	ck_assert_uint_eq(snapshot->n_groups, 2);
	for (size_t i = 0; i < 2; i++) {
		const struct tdt_snapshot_group *group = snapshot->groups[i];
		bool is_a = group->n == 4;

		ck_assert_uint_eq(group->n, is_a ? 4 : 2);
		ck_assert_int_eq(group->answer, TDT_ANSWER_FRESH);
		ck_assert_int_eq(test_nodes_of(group->trace, "poll_a"), is_a);
		ck_assert_int_eq(test_nodes_of(group->trace, "poll_b"), !is_a);
		/* The smallest id first. */
		ck_assert_uint_eq(group->tasks[0]->id, id_of(&job[is_a ? 0 : 2]));
		ck_assert_uint_eq(tdt_trace_info(group->trace)->id, group->tasks[0]->id);
		ck_assert_uint_eq(group->tasks[1]->leaves, 1);
		ck_assert_uint_eq(group->tasks[1]->polls, 2);
	}
	for (int i = 0; i < 6; i++)
		end(&job[i]);
}

TEST(more_leaves_at_one_place_are_another_group)
{
	struct job job[2] = { { .leaves = 1 }, { .leaves = 2 } };

	for (int i = 0; i < 2; i++)
		start(&job[i], poll_a);
	SNAPSHOT(snapshot, take(0));
	ck_assert_uint_eq(snapshot->n_groups, 2);
	for (int i = 0; i < 2; i++)
		end(&job[i]);
}

TEST(the_oldest_comes_first)
{
	struct job job[3] = { 0 };

	start(&job[0], poll_b);
	start(&job[1], poll_a);
	grow_older();
	start(&job[2], poll_a);
	poll_now(&job[0].task);
	SNAPSHOT(snapshot, take(0));
	ck_assert_uint_eq(snapshot->n_groups, 2);
	ck_assert_uint_eq(snapshot->groups[0]->n, 2);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->id, id_of(&job[1]));
	ck_assert_uint_ge(snapshot->groups[0]->tasks[0]->state_ns, 20 * MS);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[1]->id, id_of(&job[2]));
	ck_assert_uint_eq(snapshot->groups[1]->tasks[0]->id, id_of(&job[0]));
	for (int i = 0; i < 3; i++)
		end(&job[i]);
}

TEST(a_task_that_is_ended_by_the_poll_has_a_tree)
{
	struct job job = { 0 };
	const struct tdt_snapshot *snapshot;

	start(&job, poll_a);
	job.ready = true;
	snapshot = take(0);
	ck_assert_uint_eq(snapshot->fresh, 1);
	ck_assert_int_eq(snapshot->groups[0]->tasks[0]->state, TDT_TASK_READY);
	tdt_snapshot_free(snapshot);

	/* One that has ended is no live task. */
	snapshot = take(0);
	ck_assert_uint_eq(snapshot->tasks, 0);
	tdt_snapshot_free(snapshot);
	end(&job);
}

TEST(a_task_that_does_not_answer_has_its_record)
{
	struct job job[2] = { 0 };
	const struct tdt_task_info *info;

	for (int i = 0; i < 2; i++)
		start(&job[i], poll_a);
	tdt_snapshot_free(take(0)); /* now the way up their stacks is known */
	job[0].task.held = true;
	SNAPSHOT(snapshot, take_with(1, SECOND / 2));
	ck_assert_uint_ge(snapshot->took_ns, SECOND / 2 * 3 / 4);
	ck_assert_uint_eq(snapshot->unanswered, 1);
	ck_assert_uint_eq(snapshot->fresh, 1);
	info = snapshot->groups[snapshot->groups[0]->answer == TDT_ANSWER_NONE ? 0 : 1]->tasks[0];
	ck_assert_uint_eq(info->id, id_of(&job[0]));
	ck_assert_int_eq(info->state, TDT_TASK_WAITING);
	ck_assert_uint_eq(info->polls, 2);
	ck_assert_uint_eq(info->leaves, 0);
	for (int i = 0; i < 2; i++)
		end(&job[i]);
}

TEST(a_task_that_does_not_answer_has_the_tree_it_was_last_watched_with)
{
	struct job job = { 0 };
	const struct tdt_task_info *info;

	start(&job, poll_a);
	ck_assert_int_eq(tdt_watch(INT64_MAX, NULL), 0);
	for (int i = 0; i < 5; i++) {
		poll_now(&job.task);
		tdt__watch_pass(TDT__WATCH_LONGEST);
	}
	poll_now(&job.task);
	job.task.held = true;
	SNAPSHOT(snapshot, take_with(1, SECOND / 2));
	ck_assert_uint_eq(snapshot->last, 1);
	ck_assert_int_eq(snapshot->groups[0]->answer, TDT_ANSWER_LAST);
	ck_assert_ptr_nonnull(snapshot->groups[0]->trace);
	info = snapshot->groups[0]->tasks[0];
	ck_assert_uint_eq(info->leaves, 1);
	ck_assert_uint_eq(info->polls_since, 0);
	ck_assert_uint_eq(info->age_ns, info->state_ns); /* both as of the beginning */
	ck_assert_int_eq(tdt_watch(0, NULL), 0);
	end(&job);
}

TEST(a_task_that_was_never_polled_has_its_record)
{
	TEST_TASK(task, NULL, .name = 'a', .pending = 1);
	const struct tdt_snapshot *snapshot = take(20 * MS);

	ck_assert_uint_eq(snapshot->unanswered, 1);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->polls, 0);
	tdt_snapshot_free(snapshot);
	ck_assert_int_eq(listed(task.handle), 0);
}

static void *drop_soon(void *argument)
{
	struct job *job = argument;

	/* When it is requested, or at least listed. */
	while (listed(job->task.traced.handle) == 0)
		sched_yield();
	tdt_future_drop(&job->task.traced.future);
	return NULL;
}

TEST(a_task_that_ends_while_it_is_asked_is_left_out)
{
	struct job job[2] = { 0 };
	const struct tdt_snapshot *snapshot;
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		start(&job[i], poll_a);
	job[0].task.held = true;
	ck_assert_int_eq(pthread_create(&thread, NULL, drop_soon, &job[0]), 0);
	snapshot = take(50 * SECOND); /* it does not wait so long */
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	ck_assert_uint_eq(snapshot->tasks, 1);
	ck_assert_uint_eq(snapshot->lost, 0);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->id, id_of(&job[1]));
	tdt_snapshot_free(snapshot);
	tdt_handle_unref(job[0].task.traced.handle);
	end(&job[1]);
}

static const struct tdt_snapshot *taken_inside;

static void take_inside(void)
{
	if (taken_inside == NULL)
		taken_inside = take(0);
}

TEST(taken_inside_a_poll_it_has_that_tasks_record_and_asks_the_others)
{
	struct job inside = { 0 }, other = { 0 };

	start(&other, poll_a);
	inside.act = take_inside;
	start(&inside, poll_b);
	ck_assert_ptr_nonnull(taken_inside);
	ck_assert_uint_eq(taken_inside->tasks, 2);
	ck_assert_uint_eq(taken_inside->fresh, 1);
	for (size_t i = 0; i < 2; i++) {
		const struct tdt_snapshot_group *group = taken_inside->groups[i];
		bool is_inside = group->tasks[0]->id == id_of(&inside);

		ck_assert_int_eq(group->answer, is_inside ? TDT_ANSWER_NONE : TDT_ANSWER_FRESH);
		ck_assert_int_eq(group->tasks[0]->state,
				 is_inside ? TDT_TASK_RUNNING : TDT_TASK_WAITING);
		ck_assert_uint_eq(group->tasks[0]->thread, is_inside ? (uint32_t)gettid() : 0);
	}
	tdt_snapshot_free(taken_inside);
	end(&inside);
	end(&other);
}

CASE(limits)

TEST(a_runtime_that_polls_inside_its_wake_is_given_up_too)
{
	struct job job[30] = { 0 };
	const struct tdt_snapshot *snapshot;
	size_t fresh, unanswered;

	for (int i = 0; i < 30; i++)
		start(&job[i], poll_a);
	tdt_snapshot_free(take(0)); /* now the way up their stacks is known */
	for (int i = 0; i < 30; i++)
		job[i].sleep_ms = 20;
	do {
		snapshot = take(200 * MS);
		fresh = snapshot->fresh;
		unanswered = snapshot->unanswered;
		ck_assert_uint_eq(snapshot->tasks, 30);
		tdt_snapshot_free(snapshot);
		/* It was held up for all that time; or its clock, the coarse one, stood still. */
	} while (fresh == 0 || unanswered < 10);
	for (int i = 0; i < 30; i++)
		end(&job[i]);
}

#define SILENT 5000 /* more than are requested at once */
#define BEHIND 100

TEST(tasks_that_are_silent_do_not_keep_others_from_being_asked)
{
	static struct job job[SILENT + BEHIND];
	const struct tdt_snapshot *snapshot;

	for (int i = 0; i < SILENT + BEHIND; i++) {
		start(&job[i], poll_a);
		job[i].task.held = i < SILENT;
	}
	snapshot = take_with(BEHIND, (in_valgrind() ? 10 : 2) * SECOND); /* it all passes */
	ck_assert_uint_eq(snapshot->unanswered, SILENT);
	ck_assert_uint_eq(snapshot->fresh, BEHIND);
	ck_assert_uint_eq(snapshot->n_groups, 2);
	tdt_snapshot_free(snapshot);
	for (int i = 0; i < SILENT + BEHIND; i++)
		end(&job[i]);
}

#define LISTED 16384 /* at least */
#define UNLISTED 1000

TEST(tasks_that_there_is_no_time_to_list_are_counted)
{
	static struct job job[LISTED + UNLISTED];
	const struct tdt_snapshot *snapshot;

	for (int i = 0; i < LISTED + UNLISTED; i++)
		start(&job[i], poll_a);
	for (int i = 0; i < UNLISTED / 2; i++) /* the newest come last in the registry */
		end(&job[LISTED + UNLISTED - 1 - i]);
	snapshot = take(1);
	ck_assert_uint_eq(snapshot->tasks, LISTED);
	ck_assert_uint_eq(snapshot->lost, UNLISTED / 2);
	tdt_snapshot_free(snapshot);
	snapshot = take(1000 * SECOND);
	ck_assert_uint_eq(snapshot->fresh, LISTED + UNLISTED / 2);
	ck_assert_uint_eq(snapshot->lost, 0);
	tdt_snapshot_free(snapshot);
	for (int i = 0; i < LISTED + UNLISTED / 2; i++)
		end(&job[i]);
}

TEST(a_filter_says_which_tasks)
{
	struct tdt_task_filter filter = { .size = sizeof filter, .name = "c*" };
	struct tdt_dump_options options = { .size = sizeof options, .filter = &filter };
	const char *const names[] = { "cat", "dog", "cow", NULL, "cat" };
	const struct tdt_snapshot *snapshot;
	struct test_task task[5] = { 0 };

	options.timeout_ns = 1;
	for (int i = 0; i < 5; i++) {
		struct tdt_traced traced;

		task[i].leaf.pending = 9;
		traced =
		    tdt_traced_with(test_future(&task[i].leaf), TDT_TASK_ATTR(.name = names[i]));
		test_waker_init(&task[i].waker);
		task[i].future = traced.future;
		task[i].handle = traced.handle;
	}
	snapshot = tdt_snapshot_take(&options);
	ck_assert_ptr_nonnull(snapshot);
	ck_assert_uint_eq(snapshot->tasks, 3);
	ck_assert_uint_eq(snapshot->n_groups, 1);
	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(snapshot->groups[0]->tasks[i]->name[0], 'c');
	tdt_snapshot_free(snapshot);
	filter = (struct tdt_task_filter){ .size = sizeof filter, .states = 1 << TDT_TASK_RUNNING };
	snapshot = tdt_snapshot_take(&options);
	ck_assert_ptr_nonnull(snapshot);
	ck_assert_uint_eq(snapshot->tasks, 0);
	tdt_snapshot_free(snapshot);
	for (int i = 0; i < 5; i++)
		test_task_fini(&task[i]);
}

TEST(frames_are_limited_as_asked)
{
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns = 50 * SECOND,
					    .max_frames = 1 };
	struct job job = { 0 };
	enum tdt_cut cut;

	start(&job, poll_a);
	SNAPSHOT(snapshot, tdt_snapshot_take(&options));
	ck_assert_uint_eq(tdt_trace_stack(snapshot->groups[0]->trace, 0, NULL, 0, &cut), 1);
	ck_assert_int_eq(cut, TDT_CUT_LIMIT);
	end(&job);
}

static void expect_refused(const struct tdt_dump_options *options, int error)
{
	errno = 0;
	ck_assert_ptr_null(tdt_snapshot_take(options));
	ck_assert_int_eq(errno, error);
}

TEST(bad_options_are_refused)
{
	struct {
		struct tdt_dump_options options;
		uint64_t newer;
	} larger = { { .size = sizeof larger }, 1 };
	struct tdt_task_filter filter = { .size = sizeof filter, .states = 1u << TDT_TASK_READY };
	struct tdt_dump_options options = { .size = sizeof options };

	expect_refused(&(struct tdt_dump_options){ 0 }, EINVAL);
	expect_refused(&larger.options, E2BIG);
	options.timeout_ns = -1;
	expect_refused(&options, EINVAL);
	options.timeout_ns = 0;
	options.filter = &filter;
	expect_refused(&options, EINVAL);
	filter.size = 0;
	expect_refused(&options, EINVAL);
}

CASE(waits)

TEST(each_wait_of_a_fresh_tree_is_told_and_one_of_a_record)
{
	struct job job = { .awaits = { 1001, 1002 }, .leaves = 0 };
	const struct tdt_snapshot *snapshot;

	start(&job, poll_a);
	snapshot = take(0);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->n_waits, 2);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->waits[1]->owner, 1002);
	ck_assert_uint_eq(tdt_trace_info(snapshot->groups[0]->trace)->n_waits, 2);
	tdt_snapshot_free(snapshot);

	job.task.held = true;
	snapshot = take(1);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->n_waits, 1);
	ck_assert_uint_eq(snapshot->groups[0]->tasks[0]->waits[0]->owner, 1001);
	tdt_snapshot_free(snapshot);
	end(&job);
}

/* Two tasks that wait for each other. */
static void start_ring(struct job *job)
{
	for (int i = 0; i < 2; i++)
		start(&job[i], poll_a);
	for (int i = 0; i < 2; i++) {
		job[i].awaits[0] = id_of(&job[!i]);
		job[i].leaves = 0;
		poll_now(&job[i].task);
	}
}

/* Whether there is a ring, of just these two. */
static bool expect_ring(const struct tdt_snapshot *snapshot, const struct job *job)
{
	ck_assert_uint_eq(snapshot->n_cycles, 1);
	ck_assert_uint_eq(snapshot->cycles[0]->n, 2);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(snapshot->cycles[0]->tasks[i]->id, id_of(&job[i]));
	return snapshot->cycles[0]->deadlock;
}

static struct job *other;

static void *poll_here(void *argument)
{
	struct job *job = argument;

	poll_now(&job->task);
	return NULL;
}

/* As another worker would. */
static void poll_other(void)
{
	run_on_thread(poll_here, other);
}

#define BATCH 300 /* more than are listed before any is woken */

static void expect_polled_meanwhile(struct job *ring)
{
	SNAPSHOT(snapshot, take(0));

	ck_assert_uint_eq(snapshot->fresh, BATCH + 2);
	ck_assert(!expect_ring(snapshot, ring));
}

TEST(what_was_polled_meanwhile_is_in_no_deadlock)
{
	static struct job before[BATCH], ring[2];

	for (int i = 0; i < BATCH; i++)
		start(&before[i], poll_a);
	grow_older();
	start_ring(ring);

	/* After it was listed, before it was requested: that makes it younger than the other. */
	grow_older();
	other = &ring[0];
	before[0].act = poll_other;
	expect_polled_meanwhile(ring);
	before[0].act = NULL;

	/* After it has answered. */
	other = &ring[1];
	ring[0].act = poll_other;
	expect_polled_meanwhile(ring);
	ring[0].act = NULL;

	SNAPSHOT(snapshot, take(0));
	ck_assert(expect_ring(snapshot, ring));
	for (int i = 0; i < BATCH; i++)
		end(&before[i]);
	for (int i = 0; i < 2; i++)
		end(&ring[i]);
}

static bool others_deadlock;

/* Of all but the task that is being polled. */
static void *take_the_waiting(void *argument)
{
	struct tdt_task_filter filter = { .size = sizeof filter, .states = 1 << TDT_TASK_WAITING };
	struct tdt_dump_options options = { .size = sizeof options,
					    .timeout_ns = 50 * SECOND,
					    .filter = &filter };
	const struct tdt_snapshot *snapshot = tdt_snapshot_take(&options);

	MUST(snapshot != NULL);
	others_deadlock = snapshot->n_cycles == 1 && snapshot->cycles[0]->deadlock;
	tdt_snapshot_free(snapshot);
	return argument;
}

static void take_other(void)
{
	run_on_thread(take_the_waiting, NULL);
}

TEST(snapshots_taken_at_once_find_the_same_deadlock)
{
	struct job before = { 0 }, ring[2] = { 0 };
	const struct tdt_snapshot *snapshot;

	start(&before, poll_a);
	grow_older();
	start_ring(ring);

	/* All are polled for another's sake after they were listed, before they were requested. */
	before.act = take_other;
	snapshot = take(0);
	before.act = NULL;
	ck_assert(expect_ring(snapshot, ring));
	ck_assert(others_deadlock);
	tdt_snapshot_free(snapshot);

	/* One after it has answered; the other is being polled for ours. */
	ring[1].act = take_other;
	snapshot = take(0);
	ring[1].act = NULL;
	ck_assert(expect_ring(snapshot, ring));
	ck_assert(!others_deadlock);
	tdt_snapshot_free(snapshot);

	/* Over and over, as often as can be told from none. */
	for (int i = 0; i < 300; i++)
		tdt_snapshot_free(take(0));
	snapshot = take(0);
	ck_assert(expect_ring(snapshot, ring));
	tdt_snapshot_free(snapshot);
	end(&before);
	for (int i = 0; i < 2; i++)
		end(&ring[i]);
}

TEST(tasks_of_one_id_are_told_apart_and_awaited_by_nobody)
{
	const struct tdt_task_attr attr = { .size = sizeof attr, .id = 4711 };
	struct job job[3] = { { .awaits = { 4711 } }, { .awaits = { 0 } }, { .awaits = { 0 } } };

	start(&job[0], poll_a);
	for (int i = 1; i < 3; i++) {
		struct poll_now *task = &job[i].task;

		start(&job[i], poll_a);
		poll_now_end(task);
		job[i].awaits[0] = id_of(&job[0]);
		job[i].leaves = 0;
		task->traced = tdt_traced_with(future_of(poll_a, &job[i]), &attr);
		poll_now(task);
	}
	SNAPSHOT(snapshot, take(0));
	ck_assert_uint_eq(snapshot->tasks, 3);
	ck_assert_uint_eq(snapshot->n_cycles, 0);
	for (int i = 0; i < 3; i++)
		end(&job[i]);
}

CASE(wrong)

TEST(without_memory_it_has_fewer_trees_or_tasks)
{
	struct job job[4] = { 0 };
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 50 * SECOND };
	const struct tdt_snapshot *snapshot;
	size_t fewer = 0;
	int allocations;

	NEEDS_FAILING_MEMORY();
	start_ring(job);
	start(&job[2], poll_b);
	start(&job[3], poll_b);
	job[3].awaits[0] = 1;
	job[3].awaits[1] = 2;
	tdt_snapshot_free(take(0));

	no_memory_begin(-1);
	snapshot = tdt_snapshot_take(&options);
	tdt_snapshot_free(snapshot);
	allocations = no_memory_end();
	ck_assert_int_eq(no_memory_kept(), 0);
	ck_assert_int_ge(allocations, 15);
	for (int i = 0; i < allocations; i++) {
		size_t tasks = 0, lost = 0, fresh = 0;
		int error;

		no_memory_begin(i);
		errno = 0;
		snapshot = tdt_snapshot_take(&options);
		error = errno;
		if (snapshot != NULL) {
			tasks = snapshot->tasks;
			lost = snapshot->lost;
			fresh = snapshot->fresh;
		}
		tdt_snapshot_free(snapshot);
		no_memory_end();
		ck_assert_msg(no_memory_kept() == 0,
			      "%ld not freed when allocation %d and all after it fail",
			      no_memory_kept(), i);
		if (snapshot == NULL)
			ck_assert_int_eq(error, ENOMEM);
		else
			ck_assert_uint_eq(tasks + lost, 4);
		fewer += snapshot != NULL && fresh < 4;
	}
	ck_assert_uint_gt(fewer, 0);
	for (int i = 0; i < 4; i++)
		end(&job[i]);
}

static void load_and_unload(void)
{
	void *plugin = dlopen(PLUGINS "/plugin_a.so", RTLD_NOW | RTLD_LOCAL);

	ck_assert_ptr_nonnull(plugin);
	ck_assert_int_eq(dlclose(plugin), 0);
}

static bool is_guessed(const struct tdt_snapshot *snapshot)
{
	ck_assert_uint_eq(snapshot->fresh, 1);
	return tdt_node_frame(tdt_node_first_child(tdt_trace_root(snapshot->groups[0]->trace)))
	    ->guessed;
}

TEST(a_tree_that_no_unloaded_module_can_change_is_not_marked)
{
	struct job job = { .act = load_and_unload };

	start(&job, poll_a);
	SNAPSHOT(snapshot, take(0));
	ck_assert(!is_guessed(snapshot));
	end(&job);
}

/* The task is requested three times, and waits in a module that stays. */
TEST(a_tree_is_marked_whose_every_poll_unloads_a_module)
{
	void *stays = dlopen(PLUGINS "/plugin_b.so", RTLD_NOW | RTLD_LOCAL);
	const struct tdt_snapshot *snapshot;
	uint64_t polls = 1, asked = 0;
	struct job job = { 0 };

	ck_assert_ptr_nonnull(stays);
	*(void **)&job.await = dlsym(stays, "plugin_poll");
	start(&job, poll_a);
	job.act = load_and_unload;
	/*
	 * On a busy machine the number of unloads may not be had in time: then it is marked at
	 * once.
	 */
	while (asked != 3) {
		snapshot = take(0);
		ck_assert(is_guessed(snapshot));
		asked = snapshot->groups[0]->tasks[0]->polls - polls;
		polls += asked;
		tdt_snapshot_free(snapshot);
	}
	job.act = NULL;
	while (is_guessed(snapshot = take(0)))
		tdt_snapshot_free(snapshot);
	tdt_snapshot_free(snapshot);
	end(&job);
}

static void *take_for_long(void *argument)
{
	struct tdt_dump_options options = { .size = sizeof options, .timeout_ns = 1000 * SECOND };

	tdt_snapshot_free(tdt_snapshot_take(&options));
	return NULL;
}

TEST(a_thread_that_is_cancelled_takes_all_its_questions_back)
{
	struct job job[3] = { 0 };
	pthread_t thread;
	void *result;

	for (int i = 0; i < 3; i++) {
		start(&job[i], poll_a);
		job[i].task.held = i > 0;
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, take_for_long, NULL), 0);
	while (listed(job[2].task.traced.handle) == 0)
		sched_yield();
	ck_assert_int_eq(pthread_cancel(thread), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, PTHREAD_CANCELED);
	for (int i = 0; i < 3; i++)
		end(&job[i]);
}

static void exit_thread(const struct tdt_waker *waker)
{
	pthread_exit(&other);
}

TEST(a_waker_that_unwinds_leaves_no_question_behind)
{
	struct job job[3] = { 0 };
	struct tdt_waker_vtable vtable;
	pthread_t thread;
	void *result;

	for (int i = 0; i < 3; i++)
		start(&job[i], poll_a);
	vtable = *job[1].task.waker.vtable;
	vtable.wake = exit_thread;
	job[1].task.waker.vtable = &vtable;
	ck_assert_int_eq(pthread_create(&thread, NULL, take_for_long, NULL), 0);
	ck_assert_int_eq(pthread_join(thread, &result), 0);
	ck_assert_ptr_eq(result, &other);
	for (int i = 0; i < 3; i++)
		end(&job[i]);
}
