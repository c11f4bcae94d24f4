// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recording/timeline.  The phases of tasks, and the wake-ups that lead to polls, by the
 * events of a recording.
 */

#include <config.h>

#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "lib/no_memory.h"
#include "lib/recording_maker.h"
#include "lib/test.h"
#include "recording/timeline.h"

static struct maker *maker;
static unsigned ring, other;
static char text[4096];

static void begin(void)
{
	maker = maker_new();
	maker_header(maker)->taken = 1;
	ring = maker_ring(maker, TDT_RING_POLLS, 64, 11);
	other = maker_ring(maker, TDT_RING_POLLS, 64, 12);
}

/* The steps of a task: "100 polling<1 200 waiting ": `<1` says that wake-up 1 led there. */
static const char *steps_of(uint64_t task)
{
	static const char *const names[TDT__PHASES] = { "unknown",  "spawned", "waiting",
							"runnable", "polling", "ended" };
	struct tdt__recording *recording;
	struct tdt__timeline timeline;
	struct tdt__step step;
	size_t size, n = 0;
	void *block = maker_block(maker, &size);

	ck_assert_int_eq(tdt__recording_open(&recording, block, size), 0);
	ck_assert_int_eq(tdt__timeline_begin(&timeline, recording), 0);
	text[0] = '\0';
	while (tdt__timeline_next(&timeline, &step)) {
		if (step.task == TDT__RECORDED_NONE || step.item.event.task != task)
			continue;
		n += (size_t)sprintf(text + n, "%" PRIu64 " %s", step.item.ns,
				     names[step.after.phase]);
		if (step.wake != 0)
			n += (size_t)sprintf(text + n, "<%" PRIu64, step.wake);
		n += (size_t)sprintf(text + n, step.migrated ? "* " : " ");
	}
	tdt__timeline_end(&timeline);
	tdt__recording_close(recording);
	free(block);
	return text;
}

START_TEST(a_task_waits_is_woken_and_polled)
{
	begin();
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 50, 7, 0, 0, "", "", 0);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, other, 150, 7, 0);
	maker_wake(maker, other, 160, 7, 0); /* leads to nothing more */
	maker_poll(maker, other, 200, 10, 7, TDT_PENDING);
	maker_poll(maker, other, 300, 10, 7, TDT_READY);
	ck_assert_str_eq(steps_of(7),
			 "50 spawned 100 polling 110 waiting 150 runnable<1 160 runnable "
			 "200 polling<1* 210 waiting 300 polling 310 ended ");
	maker_free(maker);
}
END_TEST

START_TEST(a_task_that_was_woken_in_its_poll_is_runnable)
{
	begin();
	maker_wake(maker, ring, 105, 7, 7);
	maker_wake(maker, ring, 106, 7, 7);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_poll(maker, ring, 120, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 105 polling<1 106 polling 110 runnable "
				      "120 polling<1 130 waiting ");
	maker_free(maker);
}
END_TEST

START_TEST(a_task_ends_where_it_is_dropped_or_panics)
{
	begin();
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_identity(maker, ring, TDT_EVENT_END, 150, 7, TDT_PENDING, 0, "", "", 0);
	maker_identity(maker, ring, TDT_EVENT_END, 205, 8, TDT_PANICKED, 0, "", "", 0);
	maker_poll(maker, ring, 200, 10, 8, TDT_PANICKED);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 150 ended ");
	ck_assert_str_eq(steps_of(8), "200 polling 205 polling 210 ended ");
	maker_free(maker);
}
END_TEST

START_TEST(what_follows_a_poll_that_was_remarkable_is_unknown)
{
	unsigned remarkable;

	begin();
	remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 11);
	maker_poll(maker, remarkable, 100, 10, 7, TDT_PENDING);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 110 unknown 200 polling 210 waiting ");
	maker_free(maker);
}
END_TEST

START_TEST(nothing_is_known_after_a_stop)
{
	begin();
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, ring, 120, 7, 0);
	maker_add(maker, other, (struct tdt_event){ .kind = TDT_EVENT_STOP, .time = 150 }, NULL, 0);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 120 runnable<1 200 polling "
				      "210 waiting ");
	maker_free(maker);
}
END_TEST

static int begin_and_end(void *argument)
{
	struct tdt__timeline timeline;
	int err = tdt__timeline_begin(&timeline, argument);

	if (err == 0)
		tdt__timeline_end(&timeline);
	return err;
}

START_TEST(without_memory_beginning_says_so)
{
	struct tdt__recording *recording;
	size_t size;
	void *block;

	begin();
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	block = maker_block(maker, &size);
	ck_assert_int_eq(tdt__recording_open(&recording, block, size), 0);
	no_memory_each(begin_and_end, recording, 2);
	tdt__recording_close(recording);
	free(block);
	maker_free(maker);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("timeline");
	TCase *phases = tcase_create("phases");

	tcase_add_test(phases, a_task_waits_is_woken_and_polled);
	tcase_add_test(phases, a_task_that_was_woken_in_its_poll_is_runnable);
	tcase_add_test(phases, a_task_ends_where_it_is_dropped_or_panics);
	tcase_add_test(phases, what_follows_a_poll_that_was_remarkable_is_unknown);
	tcase_add_test(phases, nothing_is_known_after_a_stop);
	tcase_add_test(phases, without_memory_beginning_says_so);
	suite_add_tcase(suite, phases);
	return test_run(suite);
}
