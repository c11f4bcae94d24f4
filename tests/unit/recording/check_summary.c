// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recording/summary, recording/summary_groups.
 * What the summary of a made recording says, to the nanosecond.
 */

#include "lib/made_recording.h"
#include "lib/test.h"
#include "recording/summary.h"

#define MS UINT64_C(1000000)
#define END (1000 * MS) /* of each recording, unless the test says otherwise */
#define NONE TDT__NO_TASK

/* What is made, in two rings of workers, and what is read. */
static unsigned one, two;
static struct tdt__summary *summary;
static struct tdt__summary_limits limits;

static void set_up(void)
{
	maker = maker_new();
	maker_header(maker)->taken = END;
	maker_header(maker)->recording = 1;
	one = maker_ring(maker, TDT_RING_POLLS, 1024, 101);
	two = maker_ring(maker, TDT_RING_POLLS, 1024, 102);
	maker_thread(maker, one, 1, 101, 0, 1, "one");
	maker_thread(maker, two, 1, 102, 0, 1, "two");
	limits = (struct tdt__summary_limits){ .rows = 100 };
}

static void tear_down(void)
{
	tdt__summary_free(summary);
	end();
	summary = NULL;
}

static void sum_up_all(void)
{
	open_block();
	summary = tdt__summary_new(recording, &limits);
	ck_assert_ptr_nonnull(summary);
}

static uint64_t id_of(uint32_t task)
{
	ck_assert_uint_lt(task, recording->n_tasks);
	return recording->task[task].id;
}

static void poll(unsigned ring, uint64_t begin, uint64_t ns, uint64_t task)
{
	maker_poll(maker, ring, begin, ns, task, TDT_PENDING);
}

static void name(uint64_t task, const char *text)
{
	maker_identity(maker, one, TDT_EVENT_SPAWN, 2, task, 0, 0, text, "a.c", 12);
}

CASE(polls, .setup = set_up, .teardown = tear_down)

TEST(an_empty_recording_has_nothing)
{
	sum_up_all();
	ck_assert_uint_eq(summary->tasks + summary->polls + summary->wakes, 0);
	ck_assert_uint_eq(summary->slow.n + summary->locks.n + summary->waits.n, 0);
	ck_assert_uint_eq(summary->starved.n + summary->delays.n + summary->latency.n, 0);
	ck_assert_uint_eq(summary->busy.n + summary->panics.n, 0);
	ck_assert_uint_eq(summary->workers.n, 2);
}

TEST(runs_are_polls_that_may_overlap)
{
	for (uint64_t task = 7; task <= 8; task++) {
		maker_event(maker, one, .kind = TDT_EVENT_RUN, .time = task * 10 * MS,
			    .task = task);
		maker_event(maker, two, .kind = TDT_EVENT_RUN,
			    .detail = task == 7 ? TDT_PENDING : 0, .time = 500 * MS, .task = task);
	}
	sum_up_all();
	ck_assert_uint_eq(summary->slow.n, 2);
	ck_assert_uint_eq(id_of(summary->slow.entry[0].task), 8);
	ck_assert(summary->slow.entry[0].going_on);
	ck_assert_uint_eq(summary->slow.entry[0].ns, END - 80 * MS);
	ck_assert_uint_eq(summary->slow.entry[1].ns, 430 * MS);
	ck_assert(!summary->slow.entry[1].going_on);
	ck_assert_uint_eq(summary->waits.entry[0].ns, END - 500 * MS);
	ck_assert_uint_eq(summary->polls, 2);
}

TEST(the_slowest_poll_comes_first_and_of_equal_ones_the_earlier)
{
	poll(one, 10 * MS, 5 * MS, 7);
	poll(two, 12 * MS, 50 * MS, 8);
	poll(one, 20 * MS, 5 * MS, 9);
	sum_up_all();
	ck_assert_uint_eq(summary->polls, 3);
	ck_assert_uint_eq(summary->tasks, 3);
	ck_assert_uint_eq(summary->slow.n, 3);
	ck_assert_uint_eq(id_of(summary->slow.entry[0].task), 8);
	ck_assert_uint_eq(summary->slow.entry[0].ns, 50 * MS);
	ck_assert_uint_eq(summary->slow.entry[0].start, 12 * MS);
	ck_assert_uint_eq(summary->slow.entry[0].thread, 102);
	ck_assert_uint_eq(id_of(summary->slow.entry[1].task), 7);
	ck_assert_uint_eq(id_of(summary->slow.entry[2].task), 9);
}

TEST(only_as_many_entries_are_kept_as_are_wanted)
{
	for (uint64_t i = 1; i <= 9; i++)
		poll(one, i * 10 * MS, (i * 7 % 9 + 1) * MS, i);
	limits.rows = 3;
	sum_up_all();
	ck_assert_uint_eq(summary->slow.n, 3);
	ck_assert_uint_eq(summary->slow.found, 9);
	for (uint64_t i = 0; i < 3; i++)
		ck_assert_uint_eq(summary->slow.entry[i].ns, (9 - i) * MS);
	ck_assert_uint_eq(summary->busy.n, 3);
	ck_assert_uint_eq(summary->busy.found, 9);
}

TEST(a_poll_that_goes_on_counts_until_the_end)
{
	poll(one, 10 * MS, MS, 7);
	maker_entry(maker, one)->task = 8;
	maker_entry(maker, one)->since = 400 * MS;
	sum_up_all();
	ck_assert_uint_eq(summary->slow.n, 2);
	ck_assert_uint_eq(id_of(summary->slow.entry[0].task), 8);
	ck_assert_uint_eq(summary->slow.entry[0].ns, 600 * MS);
	ck_assert(summary->slow.entry[0].going_on);
	ck_assert(!summary->slow.entry[1].going_on);
	ck_assert_uint_eq(id_of(summary->workers.entry[0].task), 8);
	ck_assert_uint_eq(summary->workers.entry[0].since, 400 * MS);
	ck_assert_uint_eq(summary->workers.entry[0].polling, 601 * MS);
}

TEST(a_poll_has_the_stack_that_was_found_in_it)
{
	static const uint64_t pcs[] = { 0x1000, 0x2000 };
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 100);
	uint32_t stack = maker_stack(maker, pcs, 2, 0);

	poll(one, 10 * MS, 50 * MS, 7);
	poll(two, 10 * MS, 40 * MS, 8);
	maker_event(maker, service, .kind = TDT_EVENT_STACK, .a = stack, .time = 30 * MS, .task = 7,
		    .c = 101);
	sum_up_all();
	ck_assert_uint_eq(summary->slow.entry[0].stack, stack);
	ck_assert_uint_eq(summary->slow.entry[1].stack, 0);
}

TEST(remarkable_polls_reach_further_back_and_count_once)
{
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 103);
	unsigned small = maker_ring(maker, TDT_RING_POLLS, 64, 103);

	maker_thread(maker, remarkable, 1, 103, 0, 1, "three");
	poll(remarkable, 2 * MS, 3 * MS, 7);
	poll(remarkable, 900 * MS, 2 * MS, 8);
	for (uint64_t i = 0; i < 200; i++)
		poll(small, (700 + i) * MS, 1000, 9);
	poll(small, 900 * MS, 2 * MS, 8);
	sum_up_all();
	ck_assert_uint_eq(id_of(summary->slow.entry[0].task), 7);
	ck_assert_uint_eq(summary->slow.entry[0].start, 2 * MS);
	ck_assert_uint_eq(id_of(summary->slow.entry[1].task), 8);
	ck_assert_uint_eq(summary->slow.entry[2].ns, 1000);
	ck_assert_uint_lt(summary->polls, 100);
}

TEST(workers_have_their_shares_and_nested_polls_count_once)
{
	poll(one, 110 * MS, 20 * MS, 8); /* within the next one */
	poll(one, 101 * MS, 99 * MS, 7);
	maker_park(maker, one, 200 * MS, 300 * MS);
	maker_entry(maker, two)->since = 500 * MS; /* parked */
	sum_up_all();
	ck_assert_uint_eq(summary->workers.n, 2);
	ck_assert_uint_eq(summary->workers.entry[0].thread, 101);
	ck_assert_str_eq(summary->workers.entry[0].name, "one");
	ck_assert_uint_eq(summary->workers.entry[0].polling, 99 * MS);
	ck_assert_uint_eq(summary->workers.entry[0].parked, 300 * MS);
	ck_assert_uint_eq(summary->workers.entry[0].polls, 2);
	ck_assert_uint_eq(summary->workers.entry[0].task, NONE);
	ck_assert_uint_eq(summary->workers.entry[1].polling, 0);
	ck_assert_uint_eq(summary->workers.entry[1].parked, 500 * MS);
	ck_assert_uint_eq(summary->workers.entry[0].recorded, END - 1);
	ck_assert_uint_eq(id_of(summary->busy.entry[0].task), 7);
	ck_assert_uint_eq(summary->busy.entry[0].ns, 99 * MS);
	ck_assert_double_eq_tol(summary->busy.entry[0].share, 0.099, 0.0001);
}

TEST(a_poll_that_is_only_remarkable_has_the_stack_that_was_found_in_it)
{
	static const uint64_t pcs[] = { 0x1000, 0x2000 };
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 103);
	unsigned small = maker_ring(maker, TDT_RING_POLLS, 64, 103);
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 100);
	uint32_t stack = maker_stack(maker, pcs, 2, 0);

	maker_thread(maker, remarkable, 1, 103, 0, 1, "three");
	maker_identity(maker, remarkable, TDT_EVENT_TASK, 60 * MS, 7, 0, 0, "slow", "a.c", 12);
	poll(remarkable, 10 * MS, 50 * MS, 7);
	for (uint64_t i = 0; i < 200; i++)
		poll(small, (700 + i) * MS, 1000, 9);
	maker_event(maker, service, .kind = TDT_EVENT_STACK, .a = stack, .time = 30 * MS, .task = 7,
		    .c = 103);
	sum_up_all();
	ck_assert_uint_eq(id_of(summary->slow.entry[0].task), 7);
	ck_assert_uint_eq(summary->slow.entry[0].stack, stack);
	ck_assert_str_eq(recording->task[summary->slow.entry[0].task].name, "slow");
	ck_assert_uint_eq(id_of(summary->busy.entry[0].task), 9);
}

/* The thread's first ring is still there, and its second one was overwritten. */
TEST(remarkable_polls_from_between_two_rings_of_a_thread_are_there)
{
	unsigned first = maker_ring(maker, TDT_RING_POLLS, 64, 103);
	unsigned second = maker_ring(maker, TDT_RING_POLLS, 64, 103);
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 103);

	maker_thread(maker, first, 1, 103, 0, 1, "three");
	poll(first, 10 * MS, 1000, 5);
	maker_thread(maker, second, 20 * MS, 103, 0, 1, "three");
	maker_thread(maker, remarkable, 20 * MS, 103, 0, 1, "three");
	poll(remarkable, 30 * MS, 5 * MS, 7);
	maker_identity(maker, remarkable, TDT_EVENT_END, 40 * MS, 8, TDT_PANICKED, 0, "a", "", 0);
	for (uint64_t i = 0; i < 200; i++)
		poll(second, (500 + i) * MS, MS / 2, 9);
	sum_up_all();
	ck_assert_uint_eq(id_of(summary->slow.entry[0].task), 7);
	ck_assert_uint_eq(summary->panicked, 1);
	/* The shares are those of the time from which on all is there, and not of that since 1. */
	ck_assert_uint_eq(id_of(summary->busy.entry[0].task), 9);
	ck_assert_double_eq_tol(summary->busy.entry[0].share, 0.5 * 63 / (1000 - 636), 0.002);
}

TEST(shares_are_of_the_time_that_is_recorded)
{
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 100);

	maker_event(maker, service, .kind = TDT_EVENT_STOP, .time = 200 * MS);
	maker_event(maker, service, .kind = TDT_EVENT_START, .time = 700 * MS);
	poll(one, 100 * MS, 800 * MS, 7);
	maker_park(maker, two, 50 * MS, 900 * MS);
	limits.since = 900 * MS; /* from 100 ms on: 400 ms are recorded */
	sum_up_all();
	ck_assert_uint_eq(summary->workers.entry[0].recorded, 400 * MS);
	ck_assert_uint_eq(summary->workers.entry[0].polling, 300 * MS);
	ck_assert_uint_eq(summary->workers.entry[1].recorded, 400 * MS);
	ck_assert_uint_eq(summary->workers.entry[1].parked, 350 * MS);
	ck_assert_double_eq_tol(summary->busy.entry[0].share, 0.75, 0.0001);
}

CASE(waits, .setup = set_up, .teardown = tear_down)

TEST(a_wait_lasts_from_the_poll_to_the_wake_up)
{
	name(9, "writer");
	maker_wait(maker, one, 7, TDT_WAIT_MUTEX, 0x7f10, 9, "table");
	poll(one, 10 * MS, MS, 7);
	maker_wake(maker, two, 91 * MS, 7, 9);
	maker_poll(maker, one, 95 * MS, MS, 7, TDT_READY);
	sum_up_all();
	ck_assert_uint_eq(summary->locks.n, 1);
	ck_assert_uint_eq(summary->waits.n, 0);
	ck_assert_uint_eq(summary->locks.entry[0].ns, 80 * MS);
	ck_assert_uint_eq(summary->locks.entry[0].start, 11 * MS);
	ck_assert_uint_eq(id_of(summary->locks.entry[0].task), 7);
	ck_assert_uint_eq(id_of(summary->locks.entry[0].owner), 9);
	ck_assert_str_eq(summary->locks.entry[0].what.name, "table");
	ck_assert(!summary->locks.entry[0].going_on);
	ck_assert_uint_eq(summary->latency.n, 1);
	ck_assert_uint_eq(summary->latency.entry[0].most, 4 * MS);
	ck_assert_uint_eq(summary->latency.entry[0].at, 91 * MS);
}

TEST(without_wake_ups_a_wait_lasts_to_the_next_poll_and_there_is_no_latency)
{
	poll(one, 10 * MS, MS, 7);
	poll(one, 60 * MS, MS, 7);
	maker_identity(maker, one, TDT_EVENT_END, 90 * MS, 7, TDT_PENDING, 0, "", "", 0);
	sum_up_all();
	ck_assert_uint_eq(summary->waits.n, 1);
	ck_assert_int_eq(summary->waits.entry[0].what.kind, TDT_WAIT_UNKNOWN);
	ck_assert_uint_eq(summary->waits.entry[0].n, 2); /* the second one ended with the task */
	ck_assert_uint_eq(summary->waits.entry[0].ns, 49 * MS);
	ck_assert_uint_eq(summary->waits.entry[0].total, (49 + 29) * MS);
	ck_assert_uint_eq(summary->latency.n, 0);
}

TEST(after_a_wake_up_during_the_poll_there_is_no_wait)
{
	poll(one, 10 * MS, 10 * MS, 7);
	maker_wake(maker, two, 15 * MS, 7, 0);
	poll(one, 26 * MS, MS, 7);
	maker_wake(maker, two, 30 * MS, 7, 0);
	maker_wake(maker, two, 31 * MS, 7, 0); /* it is runnable: the first one counts */
	maker_poll(maker, one, 32 * MS, MS, 7, TDT_READY);
	sum_up_all();
	ck_assert_uint_eq(summary->waits.n, 1);
	ck_assert_uint_eq(summary->waits.entry[0].n, 1);
	ck_assert_uint_eq(summary->waits.entry[0].ns, 3 * MS);
	ck_assert_uint_eq(summary->latency.entry[0].n, 2);
	ck_assert_uint_eq(summary->latency.entry[0].most, 6 * MS);
	ck_assert_uint_eq(summary->latency.entry[0].at, 20 * MS);
	ck_assert_uint_eq(summary->latency.entry[0].median, 2 * MS);
}

TEST(a_wait_that_goes_on_counts_until_the_end)
{
	maker_wait(maker, one, 7, TDT_WAIT_MUTEX, 0x7f10, 0, NULL);
	poll(one, 10 * MS, MS, 7);
	sum_up_all();
	ck_assert_uint_eq(summary->locks.n, 1);
	ck_assert_uint_eq(summary->locks.entry[0].ns, 989 * MS);
	ck_assert_uint_eq(summary->locks.entry[0].owner, NONE);
	ck_assert(summary->locks.entry[0].going_on);
}

TEST(waits_for_one_lock_with_one_holder_are_one_group_at_any_place)
{
	static const uint64_t pcs[] = { 0x1000 };
	uint32_t stack = maker_stack(maker, pcs, 1, 0);

	for (uint64_t task = 1; task <= 4; task++) {
		maker_wait(maker, one, task, TDT_WAIT_MUTEX, 0x7f10, task == 4 ? 8 : 9, NULL);
		if (task == 3)
			maker_leaf(maker, one, task, stack, 0, 1);
		poll(one, task * 10 * MS, MS, task);
		maker_wake(maker, one, task * 10 * MS + (task + 1) * MS, task, 9);
	}
	sum_up_all();
	ck_assert_uint_eq(summary->locks.n, 2);
	ck_assert_uint_eq(summary->locks.entry[0].n, 1);
	ck_assert_uint_eq(summary->locks.entry[0].ns, 4 * MS);
	ck_assert_uint_eq(summary->locks.entry[0].stack, 0);
	ck_assert_uint_eq(summary->locks.entry[1].n, 3);
	ck_assert_uint_eq(summary->locks.entry[1].total, (1 + 2 + 3) * MS);
	ck_assert_uint_eq(summary->locks.entry[1].stack, stack); /* of the longest */
	ck_assert_uint_eq(id_of(summary->locks.entry[1].task), 3);
}

TEST(waits_at_different_places_are_different_groups_and_each_timer_is_not)
{
	static const uint64_t here[] = { 0x1000 }, there[] = { 0x2000 };
	uint32_t stacks[] = { maker_stack(maker, here, 1, 0), maker_stack(maker, there, 1, 0) };

	for (uint64_t task = 1; task <= 4; task++) {
		maker_leaf(maker, one, task, stacks[task % 2], 0, 1);
		maker_wait(maker, one, task, TDT_WAIT_TIMER, 0x7f00 + task, 0, NULL);
		poll(one, task * 10 * MS, MS, task);
		maker_wake(maker, one, (task * 10 + 2) * MS, task, 0);
	}
	sum_up_all();
	ck_assert_uint_eq(summary->waits.n, 2);
	ck_assert_uint_eq(summary->waits.entry[0].n, 2);
	ck_assert_uint_eq(summary->waits.entry[0].stack, stacks[1]);
	ck_assert_uint_eq(summary->waits.entry[1].stack, stacks[0]);
}

TEST(a_lock_is_what_several_leaves_wait_for)
{
	maker_wait(maker, one, 7, TDT_WAIT_TIMER, 1, 0, NULL);
	maker_wait(maker, one, 7, TDT_WAIT_MUTEX, 2, 9, NULL);
	maker_wait(maker, one, 7, TDT_WAIT_IO, 3, 0, NULL);
	poll(one, 10 * MS, MS, 7);
	maker_wake(maker, one, 20 * MS, 7, 0);
	sum_up_all();
	ck_assert_uint_eq(summary->locks.n, 1);
	ck_assert_uint_eq(summary->waits.n, 0);
	ck_assert_uint_eq(summary->locks.entry[0].what.object, 2);
}

TEST(waits_from_before_events_were_overwritten_do_not_count)
{
	unsigned small = maker_ring(maker, TDT_RING_POLLS, 64, 103);

	poll(one, 10 * MS, MS, 7); /* thread 103 may have polled it since */
	poll(one, 20 * MS, MS, 8);
	for (uint64_t i = 0; i < 200; i++)
		poll(small, (300 + i) * MS, 1000, 9);
	maker_wake(maker, one, 600 * MS, 7, 0);
	poll(one, 700 * MS, MS, 7);
	maker_wake(maker, one, 705 * MS, 7, 0);
	sum_up_all();
	ck_assert_uint_gt(summary->whole, 400 * MS);
	ck_assert_uint_lt(summary->whole, 500 * MS);
	for (size_t i = 0; i < summary->waits.n; i++)
		ck_assert_uint_ge(summary->waits.entry[i].start, summary->whole);
	ck_assert_uint_eq(summary->latency.entry[0].most, 100 * MS);
}

TEST(tasks_that_have_ended_do_not_wait)
{
	maker_poll(maker, one, 10 * MS, MS, 7, TDT_READY);
	maker_identity(maker, one, TDT_EVENT_END, 11 * MS, 7, TDT_READY, 0, "", "", 0);
	maker_wake(maker, two, 12 * MS, 7, 0);
	poll(one, 20 * MS, MS, 8);
	maker_identity(maker, one, TDT_EVENT_END, 22 * MS, 8, TDT_PENDING, 0, "", "", 0);
	maker_wake(maker, two, 23 * MS, 8, 0);
	sum_up_all();
	ck_assert_uint_eq(summary->delays.n + summary->latency.n, 0);
	ck_assert_uint_eq(summary->waits.n, 1);
	ck_assert_uint_eq(summary->waits.entry[0].ns, MS);
}

/* A listing of task 7, which waits since then. */
static void list_7(unsigned ring, uint64_t at, uint64_t since)
{
	const uint64_t payload[] = { 2, 1, 0, 0, 2, 8 };

	maker_add(maker, ring,
		  (struct tdt_event){ .kind = TDT_EVENT_STATE,
				      .detail = TDT_WAIT_MUTEX,
				      .a = 1,
				      .b = TDT_STATE_IDLE,
				      .time = at,
				      .task = 7,
				      .c = since },
		  payload, sizeof payload);
}

/* The recorder is off from 100 to 600 ms. */
static void pause_recorder(void)
{
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 100);

	maker_event(maker, service, .kind = TDT_EVENT_STOP, .time = 100 * MS);
	maker_event(maker, service, .kind = TDT_EVENT_START, .time = 600 * MS);
}

TEST(a_pause_of_the_recorder_is_no_wait)
{
	pause_recorder();
	poll(one, 10 * MS, MS, 7);
	poll(one, 80 * MS, MS, 8);
	maker_wake(maker, two, 90 * MS, 8, 0);
	poll(one, 700 * MS, MS, 7);
	poll(one, 710 * MS, MS, 8);
	sum_up_all();
	ck_assert_uint_eq(summary->latency.n + summary->delays.n, 0);
	ck_assert_uint_eq(summary->waits.n, 1);
	ck_assert_uint_eq(summary->waits.entry[0].ns, 299 * MS);
	ck_assert_uint_eq(summary->waits.entry[0].n, 4);
	ck_assert_uint_eq(summary->waits.entry[0].total, (89 + 9 + 299 + 289) * MS);
}

TEST(a_wait_for_an_orphaned_lock_comes_first)
{
	const uint64_t payload[] = { 2, 1, 0, 0, 2, 8, 1 };

	maker_wait(maker, one, 6, TDT_WAIT_MUTEX, 3, 9, NULL);
	poll(one, 5 * MS, MS, 6);
	maker_wait(maker, one, 7, TDT_WAIT_MUTEX, 2, 8, NULL);
	poll(one, 10 * MS, MS, 7);
	maker_add(maker, two,
		  (struct tdt_event){ .kind = TDT_EVENT_STATE, .detail = TDT_WAIT_MUTEX, .a = 1,
				      .b = TDT_STATE_IDLE, .time = 50 * MS, .task = 7,
				      .c = 10 * MS },
		  payload, sizeof payload);
	sum_up_all();
	ck_assert_uint_eq(summary->locks.n, 2);
	ck_assert_uint_eq(summary->locks.entry[0].what.object, 2);
	ck_assert_uint_eq(summary->locks.entry[0].what.orphaned, 1);
	ck_assert_uint_eq(summary->locks.entry[1].what.orphaned, 0);
}

TEST(a_wait_that_goes_on_over_a_pause_is_one)
{
	pause_recorder();
	maker_wait(maker, one, 7, TDT_WAIT_MUTEX, 2, 8, NULL);
	poll(one, 10 * MS, MS, 7);
	list_7(two, 700 * MS, 10 * MS);
	sum_up_all();
	ck_assert_uint_eq(summary->locks.n, 1);
	ck_assert_uint_eq(summary->locks.entry[0].n, 1);
	ck_assert(summary->locks.entry[0].going_on);
	ck_assert_uint_eq(summary->locks.entry[0].ns, END - 11 * MS);
}

TEST(of_two_waits_before_and_after_a_pause_only_the_second_goes_on)
{
	pause_recorder();
	poll(one, 10 * MS, MS, 7);
	list_7(two, 700 * MS, 500 * MS);
	sum_up_all();
	ck_assert_uint_eq(summary->waits.n, 1);
	ck_assert(!summary->waits.entry[0].going_on);
	ck_assert_uint_eq(summary->locks.n, 1);
	ck_assert(summary->locks.entry[0].going_on);
	ck_assert_uint_eq(summary->locks.entry[0].ns, END - 500 * MS);
}

TEST(a_lock_that_was_passed_on_has_the_holder_that_it_had_last)
{
	maker_wait(maker, one, 7, TDT_WAIT_MUTEX, 2, 8, NULL);
	poll(one, 10 * MS, MS, 7);
	poll(one, 20 * MS, MS, 9);
	maker_event(maker, two, .kind = TDT_EVENT_LOCK, .time = 100 * MS, .task = 9, .c = 2);
	sum_up_all();
	ck_assert_uint_eq(summary->locks.n, 1);
	ck_assert_uint_eq(id_of(summary->locks.entry[0].owner), 9);
	ck_assert_uint_eq(summary->locks.entry[0].ns, END - 11 * MS);
}

TEST(a_lock_is_the_main_wait_and_else_a_task)
{
	for (uint64_t task = 7; task <= 8; task++) {
		maker_wait(maker, one, task, TDT_WAIT_TIMER, 1, 0, NULL);
		maker_wait(maker, one, task, TDT_WAIT_TASK, 0, 3, NULL);
		if (task == 8)
			maker_wait(maker, one, task, TDT_WAIT_MUTEX, 2, 9, NULL);
		poll(one, task * 10 * MS, MS, task);
	}
	sum_up_all();
	ck_assert_uint_eq(summary->waits.n, 1);
	ck_assert_int_eq(summary->waits.entry[0].what.kind, TDT_WAIT_TASK);
	ck_assert_uint_eq(summary->locks.n, 1);
}

/* Have task `task` wait, and be polled `ns` after its wake-up. */
static void late(uint64_t at, uint64_t task, uint64_t ns)
{
	maker_wake(maker, two, at, task, 0);
	maker_poll(maker, one, at + ns, 10, task, TDT_PENDING);
}

CASE(latencies, .setup = set_up, .teardown = tear_down)

TEST(quantiles_are_exact)
{
	name(7, "a");
	for (uint64_t i = 0; i < 300; i++)
		late(MS + i * 1000, 7, i * 7 % 300 + 1); /* each length from 1 to 300 once */
	sum_up_all();
	ck_assert_uint_eq(summary->latency.n, 1);
	ck_assert_uint_eq(summary->latency.entry[0].n, 300);
	ck_assert_uint_eq(summary->latency.entry[0].median, 150);
	ck_assert_uint_eq(summary->latency.entry[0].p99, 297);
	ck_assert_uint_eq(summary->latency.entry[0].most, 300);
}

TEST(quantiles_of_few_and_of_equal_ones_are_exact)
{
	name(7, "a");
	name(8, "b");
	name(9, "c");
	late(MS, 7, 5);
	for (uint64_t i = 1; i <= 3; i++)
		late(i * 2 * MS, 8, 4);
	late(20 * MS, 9, 1);
	late(30 * MS, 9, 3);
	sum_up_all();
	ck_assert_uint_eq(summary->latency.n, 3);
	ck_assert_uint_eq(summary->latency.entry[0].median, 5);
	ck_assert_uint_eq(summary->latency.entry[0].p99, 5);
	ck_assert_uint_eq(summary->latency.entry[1].median, 4);
	ck_assert_uint_eq(summary->latency.entry[1].most, 4);
	ck_assert_uint_eq(summary->latency.entry[2].median, 1);
	ck_assert_uint_eq(summary->latency.entry[2].p99, 3);
}

TEST(names_that_differ_in_numbers_are_one_family)
{
	name(1, "conn 1");
	name(2, "conn 234");
	name(3, "conn");
	name(4, "conn 1a");
	maker_identity(maker, one, TDT_EVENT_SPAWN, 2, 5, 0, 0, "", "a.c", 12);
	maker_identity(maker, one, TDT_EVENT_SPAWN, 2, 6, 0, 0, "", "a.c", 12);
	maker_identity(maker, one, TDT_EVENT_SPAWN, 2, 7, 0, 0, "", "a.c", 13);
	for (uint64_t task = 1; task <= 7; task++)
		late(task * MS, task, 10 * task);
	sum_up_all();
	ck_assert_uint_eq(summary->latency.n, 5);
	ck_assert_uint_eq(summary->latency.entry[1].n, 2); /* 5 and 6 */
	ck_assert(!summary->latency.entry[1].several);
	ck_assert_uint_eq(id_of(summary->latency.entry[1].slowest), 6);
	ck_assert_uint_eq(summary->latency.entry[4].n, 2); /* 1 and 2 */
	ck_assert(summary->latency.entry[4].several);
}

TEST(remarkable_latencies_are_listed_also_from_before)
{
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 103);
	unsigned small = maker_ring(maker, TDT_RING_POLLS, 64, 103);

	maker_thread(maker, remarkable, 1, 103, 0, 1, "three");
	maker_delay(maker, remarkable, 200 * MS, 8, 150 * MS);
	for (uint64_t i = 0; i < 200; i++)
		poll(small, (201 + i) * MS, 1000, 5);
	maker_delay(maker, remarkable, 700 * MS, 7, 200 * MS); /* which is the next one */
	late(500 * MS, 7, 200 * MS);
	late(750 * MS, 7, 99 * MS); /* not remarkable */
	maker_wake(maker, two, 880 * MS, 9, 0); /* and not polled any more */
	sum_up_all();
	ck_assert_uint_eq(summary->delays.n, 3);
	ck_assert_uint_eq(id_of(summary->delays.entry[0].task), 7);
	ck_assert_uint_eq(id_of(summary->delays.entry[1].task), 8);
	ck_assert_uint_eq(summary->delays.entry[1].at, 50 * MS);
	ck_assert_uint_eq(summary->delays.entry[1].thread, 103);
	ck_assert_uint_eq(id_of(summary->delays.entry[2].task), 9);
	ck_assert_uint_eq(summary->delays.entry[2].ns, 120 * MS);
	ck_assert(summary->delays.entry[2].going_on);
	ck_assert_uint_eq(summary->latency.entry[0].n, 2);
}

/* ---- Starvation ---- */

/*
 * Task 12 is woken while worker `one` polls task 7 for 50 ms, and worker `two` is parked for the
 * last 30 ms of that.
 */
static void starve(void)
{
	poll(one, 100 * MS, MS, 12);
	poll(one, 110 * MS, 50 * MS, 7);
	poll(one, 160 * MS, MS, 8); /* a shorter one between */
	maker_wake(maker, two, 115 * MS, 12, 0);
	poll(two, 116 * MS, 14 * MS, 9);
	maker_park(maker, two, 130 * MS, 100 * MS);
}

CASE(starving, .setup = set_up, .teardown = tear_down)

TEST(a_task_that_waits_for_its_one_worker_while_another_is_parked_is_starved)
{
	starve();
	poll(one, 161 * MS, MS, 12);
	sum_up_all();
	ck_assert_uint_eq(summary->starved.n, 1);
	ck_assert_uint_eq(id_of(summary->starved.entry[0].task), 12);
	ck_assert_uint_eq(summary->starved.entry[0].thread, 101);
	ck_assert_uint_eq(summary->starved.entry[0].n, 1);
	ck_assert_uint_eq(summary->starved.entry[0].ns, 31 * MS);
	ck_assert_uint_eq(summary->starved.entry[0].total, 31 * MS);
	ck_assert_uint_eq(summary->starved.entry[0].at, 115 * MS);
	ck_assert_uint_eq(summary->starved.entry[0].polls, 2);
	ck_assert_uint_eq(id_of(summary->starved.entry[0].behind), 7);
}

TEST(a_task_that_is_never_polled_again_is_starved_until_the_end)
{
	poll(one, 100 * MS, MS, 12);
	maker_entry(maker, one)->task = 7;
	maker_entry(maker, one)->since = 200 * MS;
	maker_entry(maker, two)->since = 50 * MS; /* parked */
	maker_wake(maker, maker_ring(maker, TDT_RING_OTHERS, 64, 103), 250 * MS, 12, 0);
	sum_up_all();
	ck_assert_uint_eq(summary->starved.n, 1);
	ck_assert_uint_eq(summary->starved.entry[0].ns, 750 * MS);
	ck_assert_uint_eq(id_of(summary->starved.entry[0].behind), 7);
}

TEST(a_task_that_another_worker_polls_is_not_starved)
{
	starve();
	poll(two, 231 * MS, MS, 12);
	sum_up_all();
	ck_assert_uint_eq(summary->starved.n, 0);
}

TEST(a_task_that_migrated_before_is_not_starved)
{
	poll(two, 50 * MS, MS, 12);
	starve();
	poll(one, 161 * MS, MS, 12);
	sum_up_all();
	ck_assert_uint_eq(summary->starved.n, 0);
}

TEST(a_task_is_not_starved_while_its_own_worker_is_parked)
{
	poll(one, 100 * MS, MS, 12);
	maker_park(maker, one, 110 * MS, 60 * MS);
	maker_park(maker, two, 110 * MS, 60 * MS);
	maker_wake(maker, two, 115 * MS, 12, 0);
	poll(one, 170 * MS, MS, 12);
	sum_up_all();
	ck_assert_uint_eq(summary->starved.n, 0);
}

CASE(rest, .setup = set_up, .teardown = tear_down)

TEST(panics_are_listed_the_newest_first)
{
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 103);

	maker_thread(maker, remarkable, 1, 103, 0, 1, "three");
	maker_identity(maker, remarkable, TDT_EVENT_END, 10 * MS, 6, TDT_PANICKED, 0, "c", "", 0);
	maker_identity(maker, one, TDT_EVENT_END, 20 * MS, 7, TDT_PANICKED, 0, "a", "", 0);
	maker_identity(maker, one, TDT_EVENT_END, 25 * MS, 9, TDT_READY, 0, "d", "", 0);
	maker_identity(maker, two, TDT_EVENT_END, 30 * MS, 8, TDT_PANICKED, 0, "b", "", 0);
	sum_up_all();
	ck_assert_uint_eq(summary->panicked, 3);
	ck_assert_uint_eq(summary->ended, 3);
	ck_assert_uint_eq(summary->panics.n, 3);
	ck_assert_uint_eq(id_of(summary->panics.entry[0].task), 8);
	ck_assert_uint_eq(summary->panics.entry[0].thread, 102);
	ck_assert_uint_eq(summary->panics.entry[0].at, 30 * MS);
	ck_assert_uint_eq(id_of(summary->panics.entry[2].task), 6);
}

TEST(what_is_older_than_wanted_does_not_count)
{
	poll(one, 10 * MS, 5 * MS, 7);
	maker_wake(maker, two, 20 * MS, 7, 0);
	poll(one, 890 * MS, 2 * MS, 7);
	maker_wake(maker, two, 895 * MS, 7, 0);
	poll(one, 950 * MS, MS, 8);
	maker_wake(maker, two, 970 * MS, 8, 0);
	poll(one, 980 * MS, MS, 8);
	limits.since = 100 * MS;
	sum_up_all();
	ck_assert_uint_eq(summary->polls, 2);
	ck_assert_uint_eq(summary->wakes, 1);
	ck_assert_uint_eq(summary->tasks, 1);
	ck_assert_uint_eq(summary->slow.n, 2);
	ck_assert_uint_eq(summary->slow.entry[0].ns, MS);
	ck_assert_uint_eq(summary->latency.n, 1);
	ck_assert_uint_eq(summary->latency.entry[0].most, 10 * MS);
	ck_assert_uint_eq(summary->workers.entry[0].start, 900 * MS);
	ck_assert_uint_eq(summary->workers.entry[0].polling, 2 * MS);
}

static int try_to_sum_up(void *argument)
{
	struct tdt__summary *made = tdt__summary_new(argument, &limits);

	if (made == NULL)
		return -errno;
	tdt__summary_free(made);
	return 0;
}

TEST(each_lack_of_memory_is_reported)
{
	for (uint64_t task = 1; task <= 100; task++) {
		char text[3] = { (char)('a' + task / 26), (char)('a' + task % 26), '\0' };

		name(task, text);
		maker_wait(maker, one, task, TDT_WAIT_MUTEX, task, 9, NULL);
		poll(one, task * MS, 10, task);
		late(task * MS + 20, task, 10);
	}
	sum_up_all();
	ck_assert_uint_eq(summary->latency.n, 100);
	no_memory_each(try_to_sum_up, recording, no_memory_possible() ? 16 : 0);
}
