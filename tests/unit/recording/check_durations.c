// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recording/durations.
 * The suite makes recordings, and counts their polls, latencies and waits, each in its bucket.
 */

#include "lib/made_recording.h"
#include "lib/test.h"
#include "recording/durations.h"
#include "recording/read.h"

#define MS UINT64_C(1000000)

static unsigned one, two;
static struct tdt__durations polls, latencies;
static struct tdt__recorded_span span;
static char waits[4096]; /* of tasks, a line each */

/* A tdt__waited_fn. */
static void note_wait(void *arg, const struct tdt__recorded_task *task, enum tdt_wait_kind kind,
		      uint64_t ns)
{
	char line[64];

	snprintf(line, sizeof line, "%" PRIu64 " \"%s\" %d %" PRIu64 "\n", task->id, task->name,
		 (int)kind, ns);
	ck_assert_uint_lt(strlen(arg) + strlen(line), sizeof waits);
	strcat(arg, line);
}

static const struct tdt__recorded_durations all_kinds = { &polls, &latencies, note_wait, waits };

static void set_up(void)
{
	maker = maker_new();
	maker_header(maker)->taken = 1000 * MS;
	one = maker_ring(maker, TDT_RING_POLLS, 8, 101);
	two = maker_ring(maker, TDT_RING_POLLS, 1024, 102);
	span = (struct tdt__recorded_span){ 0, UINT64_MAX };
	memset(&polls, 0, sizeof polls);
	memset(&latencies, 0, sizeof latencies);
	waits[0] = '\0';
}

static int count_made(void)
{
	open_block();
	return tdt__durations_count(recording, &span, &all_kinds);
}

static uint64_t all_of(const struct tdt__durations *durations)
{
	uint64_t all = 0;

	for (size_t i = 0; i <= TDT__DURATION_BOUNDS; i++)
		all += durations->n[i];
	return all;
}

static void poll_on(unsigned ring, uint64_t begin, uint64_t ns)
{
	maker_poll(maker, ring, begin, ns, 7, TDT_PENDING);
}

CASE(all, .setup = set_up, .teardown = end)

TEST(a_duration_is_in_the_first_bucket_whose_bound_it_does_not_exceed)
{
	struct tdt__durations some = { 0 };

	for (size_t i = 0; i < TDT__DURATION_BOUNDS; i++) {
		tdt__durations_add(&some, tdt__duration_bound[i]);
		tdt__durations_add(&some, tdt__duration_bound[i] + 1);
	}
	ck_assert_uint_eq(some.n[0], 1);
	for (size_t i = 1; i < TDT__DURATION_BOUNDS; i++)
		ck_assert_uint_eq(some.n[i], 2);
	ck_assert_uint_eq(some.n[TDT__DURATION_BOUNDS], 1);
}

TEST(each_poll_is_counted_with_its_duration)
{
	poll_on(one, 1 * MS, 800);
	poll_on(two, 2 * MS, MS);
	ck_assert_int_eq(count_made(), 0);
	ck_assert_uint_eq(polls.n[0], 1);
	ck_assert_uint_eq(polls.n[6], 1);
	ck_assert_uint_eq(all_of(&polls), 2);
	ck_assert_uint_eq(polls.sum, MS + 800);
	ck_assert_uint_eq(all_of(&latencies), 0);
}

TEST(a_latency_begins_with_the_first_wake_up_after_a_poll)
{
	poll_on(two, 1 * MS, 100);
	maker_wake(maker, two, 10 * MS, 7, 0);
	maker_wake(maker, two, 11 * MS, 7, 0);
	poll_on(two, 14 * MS, 100);
	ck_assert_int_eq(count_made(), 0);
	ck_assert_uint_eq(all_of(&latencies), 1);
	ck_assert_uint_eq(latencies.sum, 4 * MS);
}

TEST(consecutive_spans_count_everything_once)
{
	for (uint64_t i = 1; i <= 100; i++) {
		maker_wake(maker, two, i * MS, 7, 0);
		poll_on(two, i * MS + 500, 500);
	}
	for (uint64_t at = 0; at < 200 * MS; at += 7 * MS + 500) {
		span = (struct tdt__recorded_span){ at, at + 7 * MS + 500 };
		ck_assert_int_eq(count_made(), 0);
	}
	ck_assert_uint_eq(all_of(&polls), 100);
	ck_assert_uint_eq(polls.n[0], 100);
	ck_assert_uint_eq(polls.sum, UINT64_C(100) * 500);
	ck_assert_uint_eq(all_of(&latencies), 100);
	ck_assert_uint_eq(latencies.sum, UINT64_C(100) * 500);
}

/* Ring one has room for 8 events, so events before its oldest one may be missing. */
TEST(latencies_since_before_events_were_overwritten_do_not_count)
{
	maker_wake(maker, two, 1 * MS, 7, 0);
	for (uint64_t i = 10; i < 30; i++)
		maker_wake(maker, one, i * MS, 8, 0);
	poll_on(two, 40 * MS, 100);
	ck_assert_int_eq(count_made(), 0);
	ck_assert_uint_eq(all_of(&polls), 1);
	ck_assert_uint_eq(all_of(&latencies), 0);
}

TEST(long_polls_count_also_if_only_their_remarkable_events_are_left)
{
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 101);

	poll_on(remarkable, 1 * MS, 2 * MS);
	maker_wake(maker, remarkable, 4 * MS, 7, 0);
	for (uint64_t i = 10; i < 30; i++)
		maker_poll(maker, one, i * MS, 100, 8, TDT_PENDING);
	ck_assert_int_eq(count_made(), 0);
	ck_assert_uint_eq(polls.n[7], 1);
	ck_assert_uint_eq(all_of(&polls), polls.n[0] + 1);
	ck_assert_uint_gt(polls.n[0], 0);
}

TEST(a_wait_lasts_from_a_poll_to_the_wake_up_and_has_its_task_and_its_kind)
{
	maker_identity(maker, two, TDT_EVENT_SPAWN, 500, 7, 0, 0, "conn 7", "x.c", 1);
	maker_wait(maker, two, 7, TDT_WAIT_MUTEX, 0x1000, 9, "db");
	poll_on(two, 1 * MS, 100);
	maker_wake(maker, two, 3 * MS + 100, 7, 0);
	poll_on(two, 5 * MS, MS);
	poll_on(two, 8 * MS, 100); /* nobody reported the wake-up */
	ck_assert_int_eq(count_made(), 0);
	ck_assert_str_eq(waits, "7 \"conn 7\" 2 2000000\n7 \"conn 7\" 0 2000000\n");
}

TEST(waits_that_go_on_or_that_nobody_wants_do_not_count)
{
	static const struct tdt__recorded_durations no_waits = { .polls = &polls,
								 .latencies = &latencies };

	poll_on(two, 1 * MS, 100);
	ck_assert_int_eq(count_made(), 0);
	ck_assert_str_eq(waits, "");
	maker_wake(maker, two, 3 * MS, 7, 0);
	open_block();
	ck_assert_int_eq(tdt__durations_count(recording, &span, &no_waits), 0);
	ck_assert_uint_eq(all_of(&polls), 2);
}

/* Each of them goes on over the ends of several spans. */
TEST(a_wait_counts_once_and_as_a_whole_when_it_has_ended)
{
	for (uint64_t i = 1; i <= 3; i++)
		poll_on(two, i * 30 * MS, MS);
	maker_identity(maker, two, TDT_EVENT_END, 100 * MS, 7, TDT_PENDING, 0, "x", "x.c", 1);
	for (uint64_t at = 0; at < 120 * MS; at += 7 * MS) {
		span = (struct tdt__recorded_span){ at, at + 7 * MS };
		ck_assert_int_eq(count_made(), 0);
	}
	ck_assert_str_eq(waits, "7 \"x\" 0 29000000\n7 \"x\" 0 29000000\n7 \"x\" 0 9000000\n");
}

/* As of latencies: see above. */
TEST(waits_since_before_events_were_overwritten_do_not_count)
{
	poll_on(two, 1 * MS, 100);
	for (uint64_t i = 10; i < 30; i++)
		maker_wake(maker, one, i * MS, 8, 0);
	maker_wake(maker, two, 40 * MS, 7, 0);
	ck_assert_int_eq(count_made(), 0);
	ck_assert_str_eq(waits, "");
}

static int try_to_count(void *argument)
{
	memset(&polls, 0, sizeof polls);
	return tdt__durations_count(argument, &span, &all_kinds);
}

TEST(each_lack_of_memory_is_reported)
{
	poll_on(two, 1 * MS, 100);
	open_block();
	no_memory_each(try_to_count, recording, 3);
	ck_assert_int_eq(try_to_count(recording), 0);
	ck_assert_uint_eq(all_of(&polls), 1);
}
