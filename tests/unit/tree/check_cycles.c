// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers tree/cycles.  Rings of tasks that wait for each other, and which of them are for ever. */

#include "lib/test.h"
#include "tree/cycles.h"

#define MOST 100000
#define MOST_WAITS 4

/* A task that answered, with what its leaves wait for: tasks, by id; 0: something else. */
struct task {
	struct tdt_task_info info; /* first */
	struct tdt_wait waits[MOST_WAITS];
	const struct tdt_wait *list[MOST_WAITS];
	enum tdt__proof proof;
};

static struct task tasks[MOST];
static const struct tdt_task_info *infos[MOST];
static size_t n;
static struct tdt__cycles cycles;

static enum tdt__proof proof_of(const struct tdt_task_info *info)
{
	return ((const struct task *)info)->proof;
}

static struct task *add(uint64_t id)
{
	struct task *added = &tasks[n];

	*added = (struct task){
		.info = { .size = sizeof added->info, .id = id, .waits = added->list },
		.proof = TDT__BY_POLL,
	};
	infos[n++] = &added->info;
	return added;
}

/* One more leaf. */
static void add_wait(struct task *task, uint64_t owner)
{
	uint32_t i = task->info.n_waits++;

	task->waits[i] =
	    (struct tdt_wait){ .kind = owner != 0 ? TDT_WAIT_TASK : TDT_WAIT_IO, .owner = owner };
	task->list[i] = &task->waits[i];
	task->info.leaves = task->info.n_waits;
}

/*
 * "1>2,0 3~4": task 1 waits for task 2 and for something else; task 3 did not answer, and a record
 * tells that its only leaf waits for task 4.
 */
static void graph(const char *text)
{
	char *at = (char *)(uintptr_t)text;

	for (n = 0; *at != '\0'; at += *at == ' ') {
		struct task *added = add(strtoull(at, &at, 10));
		bool answered = *at == '>';

		do
			add_wait(added, strtoull(at + 1, &at, 10));
		while (*at == ',');
		if (!answered) {
			added->proof = TDT__BY_RECORD;
			added->info.leaves = 0;
		}
	}
}

static void find(void)
{
	tdt__cycles_find(&cycles, infos, n, proof_of);
}

static void end(size_t expected)
{
	ck_assert_uint_eq(cycles.n, expected);
	tdt__cycles_fini(&cycles);
}

/* "1,2! 3,4? 5": each ring that is found; ! is behind a deadlock, ? behind what is unproven. */
static const char *rings(void)
{
	static char text[256];
	size_t length = 0;

	find();
	text[0] = '\0';
	for (size_t i = 0; i < cycles.n; i++) {
		const struct tdt_snapshot_cycle *cycle = &cycles.cycle[i];
		const char *separator = i > 0 ? " " : "";

		for (size_t j = 0; j < cycle->n; j++, separator = ",")
			length += (size_t)sprintf(text + length, "%s%" PRIu64, separator,
						  cycle->tasks[j]->id);
		length += (size_t)sprintf(text + length, "%s%s", cycle->deadlock ? "!" : "",
					  cycle->unproven ? "?" : "");
	}
	tdt__cycles_fini(&cycles);
	return text;
}

static const char *rings_of(const char *text)
{
	graph(text);
	return rings();
}

CASE(rings)

TEST(tasks_that_wait_for_nobody_make_no_ring)
{
	ck_assert_str_eq(rings_of(""), "");
	ck_assert_str_eq(rings_of("1>0 2>0,0 3>1"), "");
}

TEST(two_that_wait_for_each_other_are_a_deadlock)
{
	ck_assert_str_eq(rings_of("7>3 5>0 3>7"), "3,7!");
}

TEST(a_ring_is_told_from_its_smallest_id_on_each_before_whom_it_waits_for)
{
	ck_assert_str_eq(rings_of("20>40 30>10 10>20 40>30"), "10,20,40,30!");
}

TEST(a_task_that_awaits_itself_is_a_ring_of_one)
{
	ck_assert_str_eq(rings_of("1>2 2>2"), "2!");
}

TEST(another_leaf_may_bring_a_ring_on)
{
	/* A select with a timer. */
	ck_assert_str_eq(rings_of("1>2,0 2>1"), "1,2");
	/* A leaf that did not say what it waits for. */
	graph("1>2 2>1");
	tasks[1].info.leaves = 2;
	ck_assert_str_eq(rings(), "1,2");
	/* One on another thread, and one there was no memory for. */
	graph("1>2 2>1");
	tasks[1].info.leaves_elsewhere = 1;
	ck_assert_str_eq(rings(), "1,2");
	graph("1>2 2>1");
	tasks[1].info.leaves_lost = 1;
	ck_assert_str_eq(rings(), "1,2");
}

TEST(without_known_leaves_there_is_no_deadlock)
{
	graph("1>2 2>1");
	tasks[1].info.leaves = 0;
	ck_assert_str_eq(rings(), "1,2");
}

TEST(a_deadlock_that_rests_on_a_record_is_unproven)
{
	graph("1>2 2~1 3>4 4>3 5>6,0 6>5 7>8 8~7");
	tasks[7].proof = TDT__BY_TREE;
	ck_assert_str_eq(rings(), "3,4! 7,8! 1,2? 5,6");
}

TEST(a_ring_rests_on_the_records_of_all_that_it_waits_for)
{
	/* 1 and 2 wait for each other; 1 also for 3, which waits for 4, and that for itself. */
	ck_assert_str_eq(rings_of("1>2,3 2>1 3>4 4~4"), "1,2? 4?");
}

TEST(a_ring_that_is_no_deadlock_rests_on_nothing)
{
	ck_assert_str_eq(rings_of("1>2,0 2~1"), "1,2");
}

TEST(a_task_that_moves_on_is_in_no_deadlock)
{
	graph("1>2 2>1");
	tasks[1].proof = TDT__UNSURE;
	ck_assert_str_eq(rings(), "1,2");
}

TEST(one_that_runs_or_has_ended_makes_no_ring)
{
	for (int state = TDT_TASK_RUNNING; state <= TDT_TASK_UNKNOWN; state++) {
		graph("1>2 2>1");
		tasks[1].info.state = (enum tdt_task_state)state;
		ck_assert_str_eq(rings(), "");
	}
}

TEST(selects_are_a_deadlock_if_all_they_wait_for_is_in_it)
{
	/* 1 selects from 2 and 3, which both wait for 1: either is the ring. */
	const char *found = rings_of("1>2,3 2>1 3>1");

	ck_assert(strcmp(found, "1,2!") == 0 || strcmp(found, "1,3!") == 0);
	/* But 3 may be brought on by 4, which waits for a socket. */
	found = rings_of("1>2,3 2>1 3>1,4 4>0");
	ck_assert(strcmp(found, "1,2") == 0 || strcmp(found, "1,3") == 0);
}

TEST(who_hangs_on_a_deadlock_is_not_of_the_ring)
{
	ck_assert_str_eq(rings_of("9>8 8>1 1>2 2>1"), "1,2!");
}

TEST(deadlocks_come_first)
{
	ck_assert_str_eq(rings_of("1>2,0 2>1 8>9 9>8 5>4 4>5"), "4,5! 8,9! 1,2");
}

TEST(two_rings_that_share_a_task_are_told_by_the_shorter)
{
	ck_assert_str_eq(rings_of("1>2,4 2>3 3>1 4>1"), "1,4!");
}

TEST(a_ring_that_leads_to_another_is_one_of_its_own)
{
	ck_assert_str_eq(rings_of("1>2 2>1,3 3>4 4>3,0"), "1,2 3,4");
}

TEST(an_id_of_several_tasks_is_nobodys)
{
	ck_assert_str_eq(rings_of("1>2 2>1 2>0"), "");
	ck_assert_str_eq(rings_of("1>2 2>1 2>1"), "");
}

TEST(an_owner_that_is_not_there_may_bring_them_on)
{
	ck_assert_str_eq(rings_of("1>2,99 2>1 3>98"), "1,2");
}

TEST(waiting_twice_for_one_task_is_as_good_as_once)
{
	ck_assert_str_eq(rings_of("1>2,2,1 2>1,1"), "1!");
}

CASE(many)

/* A chain or ring of all tasks must take neither stack nor more than linear time. */
TEST(a_long_chain_is_no_ring_and_closed_it_is_one)
{
	graph("");
	for (uint64_t i = 1; i <= MOST; i++)
		add_wait(add(i), i < MOST ? i + 1 : 0);
	find();
	end(0);

	tasks[MOST - 1].waits[0].owner = 1;
	find();
	ck_assert_uint_eq(cycles.n, 1);
	ck_assert_uint_eq(cycles.cycle[0].n, MOST);
	ck_assert_uint_eq(cycles.cycle[0].deadlock, 1);
	for (size_t i = 0; i < MOST; i++)
		ck_assert(cycles.cycle[0].tasks[i]->id == i + 1);
	end(1);

	/* Where the last also has another leaf, nobody of them is stuck for ever. */
	tasks[MOST - 1].info.leaves = 2;
	find();
	ck_assert_uint_eq(cycles.cycle[0].deadlock, 0);
	end(1);
}

TEST(many_rings_are_all_found)
{
	graph("");
	for (uint64_t i = 1; i <= MOST; i++)
		add_wait(add(i), i % 2 == 1 ? i + 1 : i - 1);
	find();
	for (size_t i = 0; i < MOST / 2; i++)
		ck_assert(cycles.cycle[i].n == 2 && cycles.cycle[i].tasks[0]->id == 2 * i + 1);
	end(MOST / 2);
}

TEST(without_memory_there_is_no_ring_and_no_leak)
{
	int allocations;

	NEEDS_FAILING_MEMORY();
	graph("1>2 2>1");
	no_memory_begin(-1);
	find();
	allocations = no_memory_end();
	end(1);
	ck_assert_int_ge(allocations, 5);
	for (int i = 0; i < allocations; i++) {
		no_memory_begin(i);
		find();
		no_memory_end();
		end(0);
	}
}
