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

/* A fresh tree with as many leaves as ids are given, up to a negative one. */
static struct task *task(uint64_t id, const int64_t *ids)
{
	struct task *added = &tasks[n];

	*added = (struct task){ .info = {
				    .size = sizeof added->info, .id = id, .waits = added->list } };
	for (; *ids >= 0; ids++) {
		uint32_t i = added->info.n_waits++;

		added->waits[i] = (struct tdt_wait){ .kind = *ids != 0 ? TDT_WAIT_TASK
								       : TDT_WAIT_IO,
						     .owner = (uint64_t)*ids };
		added->list[i] = &added->waits[i];
	}
	added->info.leaves = added->info.n_waits;
	added->proof = TDT__BY_POLL;
	infos[n++] = &added->info;
	return added;
}

#define TASK(id, ...) task(id, (const int64_t[]){ __VA_ARGS__, -1 })

static void begin(void)
{
	n = 0;
}

static void find(void)
{
	tdt__cycles_find(&cycles, infos, n, proof_of);
}

static void expect(size_t index, bool deadlock, const uint64_t *ids, size_t length)
{
	ck_assert_uint_gt(cycles.n, index);
	ck_assert_uint_eq(cycles.cycle[index].deadlock, deadlock);
	ck_assert_uint_eq(cycles.cycle[index].n, length);
	for (size_t i = 0; i < length; i++)
		ck_assert_uint_eq(cycles.cycle[index].tasks[i]->id, ids[i]);
}

#define EXPECT(index, deadlock, ...)                                                               \
	expect(index, deadlock, (const uint64_t[]){ __VA_ARGS__ },                                 \
	       sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

static void end(size_t expected)
{
	ck_assert_uint_eq(cycles.n, expected);
	tdt__cycles_fini(&cycles);
}

CASE(rings)

TEST(tasks_that_wait_for_nobody_make_no_ring)
{
	begin();
	find();
	end(0);
	TASK(1, 0);
	TASK(2, 0, 0);
	TASK(3, 1);
	find();
	end(0);
}

CASE(deadlocks)

TEST(two_that_wait_for_each_other_are_a_deadlock)
{
	begin();
	TASK(7, 3);
	TASK(5, 0);
	TASK(3, 7);
	find();
	EXPECT(0, true, 3, 7);
	end(1);
}

CASE(rings)

TEST(a_ring_is_told_from_its_smallest_id_on_each_before_whom_it_waits_for)
{
	begin();
	TASK(20, 40);
	TASK(30, 10);
	TASK(10, 20);
	TASK(40, 30);
	find();
	EXPECT(0, true, 10, 20, 40, 30);
	end(1);
}

TEST(a_task_that_awaits_itself_is_a_ring_of_one)
{
	begin();
	TASK(1, 2);
	TASK(2, 2);
	find();
	EXPECT(0, true, 2);
	end(1);
}

CASE(deadlocks)

TEST(another_leaf_may_bring_a_ring_on)
{
	/* A select with a timer. */
	begin();
	TASK(1, 2, 0);
	TASK(2, 1);
	find();
	EXPECT(0, false, 1, 2);
	end(1);

	/* A leaf that did not say what it waits for. */
	begin();
	TASK(1, 2);
	TASK(2, 1)->info.leaves = 2;
	find();
	EXPECT(0, false, 1, 2);
	end(1);

	/* One on another thread, and one there was no memory for. */
	for (int lost = 0; lost < 2; lost++) {
		begin();
		TASK(1, 2);
		*(lost ? &TASK(2, 1)->info.leaves_lost : &TASK(2, 1)->info.leaves_elsewhere) = 1;
		find();
		EXPECT(0, false, 1, 2);
		end(1);
	}
}

/* A task that did not answer, and of which a record tells that its only leaf waits for `owner`. */
static struct task *recorded(uint64_t id, int64_t owner)
{
	struct task *added = TASK(id, owner);

	added->info.leaves = 0;
	added->proof = TDT__BY_RECORD;
	return added;
}

TEST(without_known_leaves_there_is_no_deadlock)
{
	begin();
	TASK(1, 2);
	TASK(2, 1)->info.leaves = 0;
	find();
	EXPECT(0, false, 1, 2);
	end(1);
}

TEST(a_deadlock_that_rests_on_a_record_is_unproven)
{
	begin();
	TASK(1, 2);
	recorded(2, 1);
	TASK(3, 4);
	TASK(4, 3);
	TASK(5, 6, 0);
	TASK(6, 5);
	TASK(7, 8);
	recorded(8, 7)->proof = TDT__BY_TREE;
	find();
	EXPECT(0, true, 3, 4);
	EXPECT(1, true, 7, 8);
	EXPECT(2, false, 1, 2);
	EXPECT(3, false, 5, 6);
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(cycles.cycle[i].unproven, i == 2);
	end(4);
}

TEST(a_ring_rests_on_the_records_of_all_that_it_waits_for)
{
	/* 1 and 2 wait for each other; 1 also for 3, which waits for 4, and that for itself. */
	begin();
	TASK(1, 2, 3);
	TASK(2, 1);
	TASK(3, 4);
	recorded(4, 4);
	find();
	EXPECT(0, false, 1, 2);
	ck_assert_uint_eq(cycles.cycle[0].unproven, 1);
	EXPECT(1, false, 4);
	ck_assert_uint_eq(cycles.cycle[1].unproven, 1);
	end(2);
}

TEST(a_ring_that_is_no_deadlock_rests_on_nothing)
{
	begin();
	TASK(1, 2, 0);
	recorded(2, 1);
	find();
	EXPECT(0, false, 1, 2);
	ck_assert_uint_eq(cycles.cycle[0].unproven, 0);
	end(1);
}

TEST(a_task_that_moves_on_is_in_no_deadlock)
{
	begin();
	TASK(1, 2);
	TASK(2, 1)->proof = TDT__UNSURE;
	find();
	EXPECT(0, false, 1, 2);
	end(1);
}

CASE(rings)

TEST(one_that_runs_or_has_ended_makes_no_ring)
{
	for (int state = TDT_TASK_RUNNING; state <= TDT_TASK_UNKNOWN; state++) {
		begin();
		TASK(1, 2);
		TASK(2, 1)->info.state = (enum tdt_task_state)state;
		find();
		end(0);
	}
}

CASE(deadlocks)

TEST(selects_are_a_deadlock_if_all_they_wait_for_is_in_it)
{
	/* 1 selects from 2 and 3, which both wait for 1: either is the ring. */
	begin();
	TASK(1, 2, 3);
	TASK(2, 1);
	TASK(3, 1);
	find();
	ck_assert(cycles.cycle[0].deadlock && cycles.cycle[0].n == 2 &&
		  cycles.cycle[0].tasks[0]->id == 1);
	end(1);

	/* But 3 may be brought on by 4, which waits for a socket. */
	begin();
	TASK(1, 2, 3);
	TASK(2, 1);
	TASK(3, 1, 4);
	TASK(4, 0);
	find();
	ck_assert_uint_eq(cycles.cycle[0].deadlock, 0);
	end(1);
}

TEST(who_hangs_on_a_deadlock_is_not_of_the_ring)
{
	begin();
	TASK(9, 8);
	TASK(8, 1);
	TASK(1, 2);
	TASK(2, 1);
	find();
	EXPECT(0, true, 1, 2);
	end(1);
}

TEST(deadlocks_come_first)
{
	begin();
	TASK(1, 2, 0);
	TASK(2, 1);
	TASK(8, 9);
	TASK(9, 8);
	TASK(5, 4);
	TASK(4, 5);
	find();
	EXPECT(0, true, 4, 5);
	EXPECT(1, true, 8, 9);
	EXPECT(2, false, 1, 2);
	end(3);
}

CASE(rings)

TEST(two_rings_that_share_a_task_are_told_by_the_shorter)
{
	begin();
	TASK(1, 2, 4);
	TASK(2, 3);
	TASK(3, 1);
	TASK(4, 1);
	find();
	EXPECT(0, true, 1, 4);
	end(1);
}

TEST(a_ring_that_leads_to_another_is_one_of_its_own)
{
	begin();
	TASK(1, 2);
	TASK(2, 1, 3);
	TASK(3, 4);
	TASK(4, 3, 0);
	find();
	EXPECT(0, false, 1, 2);
	EXPECT(1, false, 3, 4);
	end(2);
}

TEST(an_id_of_several_tasks_is_nobodys)
{
	begin();
	TASK(1, 2);
	TASK(2, 1);
	TASK(2, 0);
	find();
	end(0);
	begin();
	TASK(1, 2);
	TASK(2, 1);
	TASK(2, 1);
	find();
	end(0);
}

CASE(deadlocks)

TEST(an_owner_that_is_not_there_may_bring_them_on)
{
	begin();
	TASK(1, 2, 99);
	TASK(2, 1);
	TASK(3, 98);
	find();
	EXPECT(0, false, 1, 2);
	end(1);
}

CASE(rings)

TEST(waiting_twice_for_one_task_is_as_good_as_once)
{
	begin();
	TASK(1, 2, 2, 1);
	TASK(2, 1, 1);
	find();
	EXPECT(0, true, 1);
	end(1);
}

CASE(many)

/* A chain or ring of all tasks must take neither stack nor more than linear time. */
TEST(a_long_chain_is_no_ring_and_closed_it_is_one)
{
	begin();
	for (int64_t i = 1; i < MOST; i++)
		TASK((uint64_t)i, i + 1);
	TASK(MOST, 0);
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
	begin();
	for (int64_t i = 0; i < MOST / 2; i++) {
		TASK((uint64_t)(2 * i + 1), 2 * i + 2);
		TASK((uint64_t)(2 * i + 2), 2 * i + 1);
	}
	find();
	for (size_t i = 0; i < MOST / 2; i++)
		ck_assert(cycles.cycle[i].n == 2 && cycles.cycle[i].tasks[0]->id == 2 * i + 1);
	end(MOST / 2);
}

TEST(without_memory_there_is_no_ring_and_no_leak)
{
	int allocations;

	NEEDS_FAILING_MEMORY();
	begin();
	TASK(1, 2);
	TASK(2, 1);
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
