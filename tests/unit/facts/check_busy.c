// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers facts/busy.  Which tasks are said to be in a busy loop, by looks at their records. */

#include "facts/busy.h"
#include "facts/record.h"
#include "lib/test.h"
#include "tree/findings.h"

#define MOST 64

/* Tasks whose records change at each look. */
static struct fake {
	struct tdt__member member;
	struct tdt_task_record record;
	uint64_t polls;     /* so many more at each look */
	uint8_t requested;  /* so many of these are made for requests */
	bool passed_on;     /* to another task, at each look */
	uint64_t others;    /* one of so many wake-ups is by another task; 0: none */
} fakes[MOST];
static unsigned looks, seed;

static struct tdt__member *member_of(void *arg, size_t index)
{
	return &fakes[index].member;
}

static bool look(void *arg, size_t index, struct tdt_task_record *record)
{
	struct fake *fake = &fakes[index];

	looks++;
	fake->record.polls += fake->polls;
	fake->record.seq += 2 * fake->passed_on;
	fake->record.own_bits =
	    (uint8_t)(fake->record.own_bits + fake->requested * TDT__REQUESTED_POLL);
	fake->record.woken_by = fake->record.woken == 0 ? 0
				: fake->others != 0 &&
					random_below(&seed, (unsigned)fake->others) == 0
				    ? fake->record.id + 1
				    : fake->record.id;
	*record = fake->record;
	return true;
}

static struct fake *fake(size_t i, uint64_t polls, bool woken)
{
	fakes[i] = (struct fake){
		.member.info = { .id = 10 * i + 10,
				 .state = TDT_TASK_RUNNABLE,
				 .polls = 1000000,
				 .woken_ns = woken,
				 .woken_by = woken ? 10 * i + 10 : 0 },
		.record = { .id = 10 * i + 10,
			    .state = TDT_TASK_RECORD_IDLE,
			    .polls = 1000000,
			    .woken = woken },
		.polls = polls,
	};
	return &fakes[i];
}

static size_t found(size_t n)
{
	const struct tdt__lock_places places = { .member = member_of, .record = look, .n = n };
	size_t busy = 0;

	looks = 0;
	tdt__busy_find(&places);
	for (size_t i = 0; i < n; i++)
		busy += fakes[i].member.info.busy_polls != 0;
	return busy;
}

CASE(busy, .timeout = 600)

TEST(a_task_that_wakes_itself_all_the_time_is)
{
	fake(0, 1000000, true);
	fake(1, 0, true);
	ck_assert_uint_eq(found(2), 1);
	ck_assert_uint_ge(fakes[0].member.info.busy_polls, 10000000);
	ck_assert_uint_ge(fakes[0].member.info.busy_ns, 100000000);
}

TEST(polls_for_requests_do_not_count)
{
	fake(0, 4, true)->requested = 3;
	ck_assert_uint_eq(found(1), 0);
}

TEST(a_task_that_others_wake_is_not)
{
	fake(0, 1000000, true)->others = 1;
	ck_assert_uint_eq(found(1), 0);
}

TEST(a_task_that_has_ended_meanwhile_is_not)
{
	fake(0, 1000000, true)->passed_on = true;
	ck_assert_uint_eq(found(1), 0);
}

TEST(without_reports_of_wakes_only_very_many_polls_count)
{
	fake(0, 1000000, false);
	fake(1, 10, false);
	ck_assert_uint_eq(found(2), 1);
	ck_assert_uint_ne(fakes[0].member.info.busy_polls, 0);
}

TEST(tasks_that_were_not_polled_just_now_are_not_looked_at)
{
	fake(0, 1000000, true)->member.info.state_ns = 1000000000;
	ck_assert_uint_eq(found(1), 0);
	ck_assert_uint_eq(looks, 0);
}

/* The healthy one that looks like it: half of its wake-ups are by others. */
TEST(a_task_that_others_wake_now_and_then_is_not)
{
	unsigned rounds = test_in_full() ? 10000 / MOST + 1 : 2;

	seed = seed_of_run();
	for (unsigned round = 0; round < rounds; round++) {
		for (size_t i = 0; i < MOST; i++)
			fake(i, 1000000, true)->others = 2;
		ck_assert_uint_eq(found(MOST), 0);
	}
}
