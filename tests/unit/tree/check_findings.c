// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers tree/findings.  The order, groups and rings of tasks that are only recorded. */

#include "lib/test.h"
#include "tree/findings.h"

static struct tdt__findings *findings;
static struct tdt_wait waits[64];
static const struct tdt_wait *list[64];

static void begin(void)
{
	findings = tdt__findings_new();
	ck_assert_ptr_nonnull(findings);
}

/* A task without a tree that has been in `state` for so long; it may wait for task `owner`. */
static struct tdt__member *add(uint64_t id, enum tdt_task_state state, uint64_t ns, uint64_t owner)
{
	struct tdt__member *member = tdt__arena_take(&findings->arena, sizeof *member);

	ck_assert_ptr_nonnull(member);
	waits[id] = (struct tdt_wait){ .kind = TDT_WAIT_TASK, .owner = owner };
	list[id] = &waits[id];
	*member = (struct tdt__member){ .info = { .size = sizeof member->info,
						  .id = id,
						  .state = state,
						  .state_ns = ns,
						  .leaves = 1,
						  .n_waits = owner != 0,
						  .waits = &list[id] },
					.proof = TDT__BY_POLL };
	member->group = tdt__groups_add(&findings->groups, TDT_ANSWER_NONE, state, 0, NULL);
	ck_assert(tdt__findings_add(findings, member));
	return member;
}

static void conclude(void)
{
	ck_assert(tdt__findings_sort(findings));
	tdt__findings_conclude(findings);
}

static void expect_group(size_t index, const uint64_t *ids, size_t n)
{
	const struct tdt_snapshot_group *group = findings->public.groups[index];

	ck_assert_uint_gt(findings->public.n_groups, index);
	ck_assert_uint_eq(group->n, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(group->tasks[i]->id, ids[i]);
}

#define EXPECT_GROUP(index, ...)                                                                   \
	expect_group(index, (const uint64_t[]){ __VA_ARGS__ },                                     \
		     sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void end(size_t tasks, size_t groups)
{
	ck_assert_uint_eq(findings->public.tasks, tasks);
	ck_assert_uint_eq(findings->public.n_groups, groups);
	tdt__findings_free(findings);
}

CASE(order)

TEST(no_tasks_are_no_groups)
{
	begin();
	conclude();
	end(0, 0);
}

TEST(deadlocks_come_first_then_polls_then_runnable_tasks_and_then_the_oldest)
{
	begin();
	add(1, TDT_TASK_WAITING, 100, 0);
	add(2, TDT_TASK_WAITING, 200, 0);
	add(3, TDT_TASK_RUNNABLE, 30, 0);
	add(4, TDT_TASK_RUNNING, 20, 0);
	add(5, TDT_TASK_WAITING, 1, 6);
	add(6, TDT_TASK_WAITING, 2, 5);
	conclude();
	EXPECT_GROUP(0, 6, 5);
	EXPECT_GROUP(1, 4);
	EXPECT_GROUP(2, 3);
	EXPECT_GROUP(3, 2, 1);
	ck_assert_uint_eq(findings->public.n_cycles, 1);
	ck_assert_uint_eq(findings->public.cycles[0]->n_groups, 1);
	end(6, 4);
}

TEST(each_deadlock_has_groups_of_its_own_in_their_order)
{
	begin();
	add(1, TDT_TASK_WAITING, 1, 2);
	add(2, TDT_TASK_WAITING, 1, 1);
	add(3, TDT_TASK_WAITING, 9, 3);
	add(4, TDT_TASK_WAITING, 5, 1); /* it waits for a deadlock, and is in none */
	conclude();
	EXPECT_GROUP(0, 1, 2);
	EXPECT_GROUP(1, 3);
	EXPECT_GROUP(2, 4);
	ck_assert_uint_eq(findings->public.n_cycles, 2);
	for (int i = 0; i < 2; i++)
		ck_assert_uint_eq(findings->public.cycles[i]->n_groups, 1);
	end(4, 3);
}

TEST(a_ring_that_is_no_deadlock_leaves_its_tasks_where_they_are)
{
	begin();
	add(1, TDT_TASK_WAITING, 1, 2);
	add(2, TDT_TASK_WAITING, 3, 1)->proof = TDT__UNSURE;
	add(3, TDT_TASK_WAITING, 2, 0);
	conclude();
	EXPECT_GROUP(0, 2, 3, 1);
	ck_assert_uint_eq(findings->public.n_cycles, 1);
	ck_assert_uint_eq(findings->public.cycles[0]->n_groups, 0);
	end(3, 1);
}

TEST(a_task_that_has_ended_is_left_out)
{
	begin();
	add(1, TDT_TASK_WAITING, 1, 0);
	findings->groups.group[add(2, TDT_TASK_RUNNING, 1, 0)->group].n--;
	findings->entry[1].member->group = TDT__LEFT_OUT;
	conclude();
	EXPECT_GROUP(0, 1);
	end(1, 1);
}

#define MANY 40 /* groups: more than there is room for at first */

/* Begin with a task without a wait, and many that wait for themselves. */
static void begin_many(void)
{
	begin();
	add(1, TDT_TASK_WAITING, 1, 0);
	for (uint64_t id = 2; id < MANY + 2; id++)
		add(id, TDT_TASK_WAITING, 1, id);
	ck_assert(tdt__findings_sort(findings));
}

/* Without memory deadlocks may be missing, or have no groups of their own; but no task is lost. */
static void expect_all_tasks(void)
{
	size_t tasks = 0;

	for (size_t i = 0; i < findings->public.n_groups; i++)
		tasks += findings->public.groups[i]->n;
	ck_assert_uint_eq(tasks, MANY + 1);
	end(MANY + 1, findings->public.n_groups);
}

TEST(without_memory_no_task_is_lost)
{
	int allocations = INT_MAX;

	NEEDS_FAILING_MEMORY();
	for (int i = -1; i < allocations; i++) {
		begin_many();
		no_memory_begin(i);
		tdt__findings_conclude(findings);
		if (i < 0) {
			allocations = no_memory_end();
			ck_assert_int_ge(allocations, 8);
			ck_assert_uint_eq(findings->public.n_groups, MANY + 1);
		} else {
			no_memory_end();
		}
		expect_all_tasks();
	}
}
