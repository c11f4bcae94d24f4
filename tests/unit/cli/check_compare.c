// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers cli/compare.  Two snapshots made by hand, and what has changed between them. */

#include "cli/compare.h"
#include "lib/dumped.h"
#include "lib/test.h"

/* The later snapshot is taken 100 ns after the earlier one. */
#define EARLIER 1000
#define LATER 1100

/* A task that was spawned at `at`, and polled last at `poll`, as the two snapshots say. */
#define THEN(at, poll, ...) TASK(.spawned_ns = EARLIER - (at), .polled_ns = EARLIER - (poll), \
				 __VA_ARGS__)
#define NOW(at, poll, ...) TASK(.spawned_ns = LATER - (at), .polled_ns = LATER - (poll), \
				__VA_ARGS__)

static struct tdt_snapshot_process then = { .pid = 1, .registry = 2, .start_real_ns = 3 };
static struct tdt_snapshot_process now = { .pid = 1, .registry = 2, .start_real_ns = 3 };
static struct dumped *before, *after;
static struct comparison comparison;

static void setup(void)
{
	then.now_ns = EARLIER;
	now.now_ns = LATER;
	before = dumped_new();
	after = dumped_new();
	before->snapshot.process = &then;
	after->snapshot.process = &now;
}

static void teardown(void)
{
	dumped_free(before);
	dumped_free(after);
}

static void compare_both(void)
{
	ck_assert_int_eq(compare(&comparison, &before->snapshot, &after->snapshot), 0);
}

/* Compare one task with itself: `f` and `g` are its trees (NULL: none).  Returns its fate. */
static enum compare_fate fate_of_one(const char *f, struct tdt_task_info earlier, const char *g,
				     struct tdt_task_info later)
{
	enum compare_fate fate;

	setup();
	dumped_group(before, f != NULL ? TDT_ANSWER_FRESH : TDT_ANSWER_NONE, f, &earlier, 1);
	dumped_group(after, g != NULL ? TDT_ANSWER_FRESH : TDT_ANSWER_NONE, g, &later, 1);
	compare_both();
	ck_assert_uint_eq(comparison.n_groups, 1);
	fate = comparison.group[0].fate;
	ck_assert_uint_eq(comparison.fates[fate], 1);
	comparison_fini(&comparison);
	teardown();
	return fate;
}

#define FATE(expected, f, earlier, g, later)							\
	ck_assert_int_eq(fate_of_one(f, (struct tdt_task_info)earlier, g,			\
				     (struct tdt_task_info)later), expected)

CASE(fates)

TEST(a_task_that_was_not_polled_did_not_move)
{
	FATE(FATE_STUCK, "f:1*", THEN(10, 50, .id = 1, .polls = 3), "f:1*",
	     NOW(10, 50, .id = 1, .polls = 3));
	FATE(FATE_STUCK, NULL, THEN(10, 50, .id = 1, .polls = 3), "f:1*",
	     NOW(10, 50, .id = 1, .polls = 3));
	FATE(FATE_MOVED, "f:1*", THEN(10, 50, .id = 1, .polls = 3), "f:2*",
	     NOW(10, 60, .id = 1, .polls = 4));
}

TEST(a_task_that_did_not_move_keeps_its_tree)
{
	const struct tdt_task_info earlier = THEN(10, 50, .id = 1), later = NOW(10, 50, .id = 1);

	setup();
	dumped_group(before, TDT_ANSWER_FRESH, "f:1*", &earlier, 1);
	dumped_group(after, TDT_ANSWER_NONE, NULL, &later, 1);
	compare_both();
	ck_assert_int_eq(comparison.group[0].fate, FATE_STUCK);
	ck_assert_ptr_eq(comparison.group[0].tasks.trace, before->groups[0].trace);
	ck_assert_uint_eq(comparison.place[0].before, 1);
	ck_assert_uint_eq(comparison.place[0].after, 1);
	comparison_fini(&comparison);
	teardown();
}

TEST(a_tree_of_an_older_poll_is_no_place)
{
	FATE(FATE_MOVED, "f:1*", THEN(10, 50, .id = 1, .polls = 3, .polls_since = 1), "f:1*",
	     NOW(10, 60, .id = 1, .polls = 4));
	FATE(FATE_STUCK, "f:1*", THEN(10, 50, .id = 1, .polls = 3, .polls_since = 1), "f:2*",
	     NOW(10, 50, .id = 1, .polls = 4, .requested = 1));
}

TEST(polls_that_were_requested_do_not_count)
{
	FATE(FATE_STUCK, "f:1*", THEN(10, 50, .id = 1, .polls = 3, .requested = 1), "f:1*",
	     NOW(10, 50, .id = 1, .polls = 5, .requested = 3));
	FATE(FATE_STUCK, "f:1*", THEN(10, 50, .id = 1, .polls = 130, .requested = 127), "f:1*",
	     NOW(10, 50, .id = 1, .polls = 132, .requested = 1));
	FATE(FATE_RETURNED, "f:1*", THEN(10, 50, .id = 1, .polls = 3, .requested = 1), "f:1*",
	     NOW(10, 50, .id = 1, .polls = 6, .requested = 3));
}

TEST(a_task_that_a_requested_poll_let_go_on_has_moved)
{
	FATE(FATE_MOVED, "f:1*", THEN(10, 50, .id = 1, .polls = 3, .requested = 1), "f:2*",
	     NOW(10, 50, .id = 1, .polls = 4, .requested = 2));
}

TEST(many_polls_are_not_taken_for_none)
{
	FATE(FATE_RETURNED, "f:1*", THEN(10, 50, .id = 1, .polls = 3), "f:1*",
	     NOW(10, 60, .id = 1, .polls = 131));
	FATE(FATE_RETURNED, "f:1*", TASK(.id = 1, .polls = 3), "f:1*", TASK(.id = 1, .polls = 131));
	FATE(FATE_STUCK, "f:1*", TASK(.id = 1, .polls = 3), "f:1*", TASK(.id = 1, .polls = 3));
}

TEST(a_poll_that_goes_on_is_one_wherever_it_is)
{
	FATE(FATE_STUCK, "f:1*",
	     THEN(10, 50, .id = 1, .polls = 3, .state = TDT_TASK_RUNNING), "g:1*",
	     NOW(10, 50, .id = 1, .polls = 3, .state = TDT_TASK_RUNNING));
	FATE(FATE_MOVED, "f:1*",
	     THEN(10, 50, .id = 1, .polls = 3, .state = TDT_TASK_RUNNING), "g:1*",
	     NOW(10, 50, .id = 1, .polls = 3));
}

TEST(a_task_without_a_known_place_does_not_come_back_to_it)
{
	static const struct tdt_wait wait = { .kind = TDT_WAIT_MUTEX, .name = "a" };
	static const struct tdt_wait *const lock[] = { &wait };

	FATE(FATE_MOVED, NULL, THEN(10, 50, .id = 1, .polls = 3), NULL,
	     NOW(10, 60, .id = 1, .polls = 4));
	FATE(FATE_RETURNED, NULL,
	     THEN(10, 50, .id = 1, .polls = 3, .waits = lock, .n_waits = 1), NULL,
	     NOW(10, 60, .id = 1, .polls = 4, .waits = lock, .n_waits = 1));
}

TEST(an_id_that_was_given_again_is_another_task)
{
	const struct tdt_task_info earlier = THEN(10, 50, .id = 1), later = NOW(20, 50, .id = 1);

	setup();
	dumped_group(before, TDT_ANSWER_FRESH, "f:1*", &earlier, 1);
	dumped_group(after, TDT_ANSWER_FRESH, "f:1*", &later, 1);
	compare_both();
	ck_assert_uint_eq(comparison.fates[FATE_CAME], 1);
	ck_assert_uint_eq(comparison.fates[FATE_WENT], 1);
	comparison_fini(&comparison);
	teardown();
}

TEST(tasks_that_have_ended_are_gone)
{
	const struct tdt_task_info earlier = THEN(10, 50, .id = 1);
	const struct tdt_task_info later = NOW(10, 50, .id = 1, .state = TDT_TASK_READY);

	setup();
	dumped_group(before, TDT_ANSWER_FRESH, "f:1*", &earlier, 1);
	dumped_group(after, TDT_ANSWER_FRESH, "f:1*", &later, 1);
	compare_both();
	ck_assert_uint_eq(comparison.n_groups, 1);
	ck_assert_int_eq(comparison.group[0].fate, FATE_WENT);
	ck_assert_ptr_eq(comparison.group[0].tasks.tasks[0], before->groups[0].tasks[0]);
	comparison_fini(&comparison);
	teardown();
}

/* Three tasks at `f` have not moved, one at `g` has not; `h` has one task, and later three. */
static void fill(void)
{
	static const struct tdt_task_info earlier[] = {
		THEN(1, 50, .id = 1), THEN(1, 40, .id = 2), THEN(1, 60, .id = 3),
		THEN(1, 50, .id = 4), THEN(1, 50, .id = 5),
	}, later[] = {
		NOW(1, 50, .id = 1, .state_ns = 150), NOW(1, 40, .id = 2, .state_ns = 160),
		NOW(1, 60, .id = 3, .state_ns = 140), NOW(1, 50, .id = 4),
		NOW(1, 80, .id = 5, .polls = 1), NOW(2, 50, .id = 6), NOW(2, 50, .id = 7),
	};

	setup();
	dumped_group(before, TDT_ANSWER_FRESH, "g:1*", &earlier[3], 1);
	dumped_group(before, TDT_ANSWER_FRESH, "f:1(a:2*)", earlier, 3);
	dumped_group(before, TDT_ANSWER_LAST, "h:1*", &earlier[4], 1);
	dumped_group(after, TDT_ANSWER_FRESH, "g:1*", &later[3], 1);
	dumped_group(after, TDT_ANSWER_FRESH, "f:1(a:2*)", later, 3);
	dumped_group(after, TDT_ANSWER_FRESH, "h:1*", &later[4], 3);
}

CASE(groups, .teardown = teardown)

TEST(the_group_with_most_tasks_comes_first)
{
	const struct compare_group *group;

	fill();
	compare_both();
	group = comparison.group;
	ck_assert_uint_eq(comparison.n_groups, 4);
	ck_assert(group[0].fate == FATE_STUCK && group[0].tasks.n == 3);
	ck_assert(group[1].fate == FATE_STUCK && group[1].tasks.n == 1);
	ck_assert(group[2].fate == FATE_RETURNED && group[3].fate == FATE_CAME);
	ck_assert_uint_eq(comparison.apart_ns, 100);
	comparison_fini(&comparison);
}

TEST(in_a_group_the_task_that_waits_longest_comes_first)
{
	const struct tdt_task_info *const *tasks;

	fill();
	compare_both();
	tasks = comparison.group[0].tasks.tasks;
	ck_assert(tasks[0]->id == 2 && tasks[1]->id == 1 && tasks[2]->id == 3);
	comparison_fini(&comparison);
}

TEST(the_place_that_has_grown_most_comes_first)
{
	fill();
	compare_both();
	ck_assert_uint_eq(comparison.n_places, 3);
	ck_assert_uint_eq(comparison.place[0].before, 1);
	ck_assert_uint_eq(comparison.place[0].after, 3);
	ck_assert_uint_eq(comparison.group[3].place, 0);
	ck_assert_uint_eq(comparison.place[1].before, comparison.place[1].after);
	ck_assert(comparison.has_grown);
	comparison_fini(&comparison);
}

TEST(of_other_processes_only_places_are_compared)
{
	const struct tdt_snapshot_process others[] = {
		{ .pid = 9, .registry = 2, .start_real_ns = 3 },
		{ .pid = 1, .registry = 9, .start_real_ns = 3 },
		{ .pid = 1, .registry = 2, .start_real_ns = 9 },
	};

	fill();
	for (int i = 0; i < 4; i++) {
		before->snapshot.process = i < 3 ? &others[i] : NULL;
		compare_both();
		ck_assert(!comparison.same_process);
		ck_assert_uint_eq(comparison.n_groups, 0);
		ck_assert_uint_eq(comparison.place[0].after, 3);
		comparison_fini(&comparison);
	}
}

TEST(the_later_snapshot_is_the_second_one)
{
	fill();
	then.now_ns = LATER + 1;
	ck_assert_int_eq(compare(&comparison, &before->snapshot, &after->snapshot), -EINVAL);
}

TEST(places_without_trees_grow_only_if_none_has_one)
{
	const struct tdt_task_info task = BARE(.id = 1, .file = "a.c", .line = 1);
	const struct tdt_task_info running = TASK(.id = 2, .state = TDT_TASK_RUNNING);

	setup();
	dumped_group(before, TDT_ANSWER_NONE, NULL, &task, 1);
	dumped_group(after, TDT_ANSWER_NONE, NULL, &task, 1);
	dumped_group(after, TDT_ANSWER_RUNNING, "f:1*", &running, 1);
	compare_both();
	ck_assert(comparison.has_grown);
	comparison_fini(&comparison);
	dumped_group(after, TDT_ANSWER_FRESH, "f:1*", &task, 1);
	compare_both();
	ck_assert(!comparison.has_grown);
	comparison_fini(&comparison);
}

static int compare_once(void *argument)
{
	int error = compare(&comparison, &before->snapshot, &after->snapshot);

	if (error == 0)
		comparison_fini(&comparison);
	return error;
}

TEST(every_allocation_of_a_comparison_may_fail)
{
	fill();
	no_memory_each(compare_once, NULL, 8);
}
