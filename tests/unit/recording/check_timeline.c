// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers recording/timeline, recording/waits.  The phases of tasks, what they wait for, and the
 * wake-ups that lead to polls, by the events of a recording.
 */

#include "lib/made_recording.h"
#include "lib/test.h"
#include "recording/timeline.h"

static unsigned ring, other;
static char text[4096];
static const char *const names[TDT__PHASES] = { "unknown",  "spawned", "waiting",
						"runnable", "polling", "ended" };

static void begin(void)
{
	maker = maker_new();
	maker_header(maker)->taken = 1;
	ring = maker_ring(maker, TDT_RING_POLLS, 64, 11);
	other = maker_ring(maker, TDT_RING_POLLS, 64, 12);
}

static bool is_of(const struct tdt__step *step, uint64_t task)
{
	return step->task != TDT__RECORDED_NONE && recording->task[step->task].id == task;
}

/*
 * The steps of a task: "100 polling<1 200 waiting ": `<1` says that wake-up 1 led there.  "200
 * waiting:150" says since when, if that is another time, and "waiting?" that it is not sure.
 */
static const char *steps_of(uint64_t task)
{
	struct tdt__timeline timeline;
	struct tdt__step step;
	size_t n = 0;

	open_block();
	ck_assert_int_eq(tdt__timeline_begin(&timeline, recording), 0);
	text[0] = '\0';
	while (tdt__timeline_next(&timeline, &step)) {
		if (!is_of(&step, task))
			continue;
		n += (size_t)sprintf(text + n, "%" PRIu64 " %s", step.item.ns,
				     names[step.after->phase]);
		if (!step.after->sure && step.after->phase != TDT__UNKNOWN)
			n += (size_t)sprintf(text + n, "?");
		if (step.after->since != step.item.ns && step.after->phase != step.before.phase)
			n += (size_t)sprintf(text + n, ":%" PRIu64, step.after->since);
		if (step.wake != 0)
			n += (size_t)sprintf(text + n, "<%" PRIu64, step.wake);
		n += (size_t)sprintf(text + n, step.migrated ? "* " : " ");
	}
	tdt__timeline_end(&timeline);
	return text;
}

CASE(phases, .setup = begin, .teardown = end)

TEST(a_task_waits_is_woken_and_polled)
{
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 50, 7, 0, 0, "", "", 0);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, other, 150, 7, 0);
	maker_wake(maker, other, 160, 7, 0); /* leads to nothing more */
	maker_poll(maker, other, 200, 10, 7, TDT_PENDING);
	maker_poll(maker, other, 300, 10, 7, TDT_READY);
	ck_assert_str_eq(steps_of(7),
			 "50 spawned 100 polling 110 waiting 150 runnable<1 160 runnable "
			 "200 polling<1* 210 waiting 300 polling 310 ended ");
}

TEST(a_task_that_was_woken_in_its_poll_is_runnable)
{
	maker_wake(maker, ring, 105, 7, 7);
	maker_wake(maker, ring, 106, 7, 7);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_poll(maker, ring, 120, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 105 polling<1 106 polling 110 runnable "
				      "120 polling<1 130 waiting ");
}

static void run_or_wait(unsigned which, uint64_t time, uint8_t detail)
{
	maker_event(maker, which, .kind = TDT_EVENT_RUN, .detail = detail, .time = time, .task = 7);
}

TEST(a_run_is_a_poll)
{
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 50, 7, 0, 0, "", "", 0);
	run_or_wait(ring, 60, 0);
	run_or_wait(other, 100, TDT_PENDING);
	maker_wake(maker, ring, 150, 7, 0);
	run_or_wait(other, 200, 0);
	maker_wake(maker, ring, 205, 7, 0);
	run_or_wait(ring, 210, TDT_PENDING);
	run_or_wait(ring, 300, 0);
	ck_assert_str_eq(steps_of(7), "50 spawned 60 polling 100 waiting 150 runnable<1 "
				      "200 polling<1* 205 polling<2 210 runnable "
				      "300 polling<2* ");
}

TEST(a_run_does_not_go_on_over_a_pause)
{
	run_or_wait(ring, 60, 0);
	maker_event(maker, other, .kind = TDT_EVENT_STOP, .time = 150);
	run_or_wait(ring, 200, 0);
	run_or_wait(ring, 210, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "60 polling 150 unknown 200 polling 210 waiting ");
}

TEST(a_task_ends_where_it_is_dropped_or_panics)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_identity(maker, ring, TDT_EVENT_END, 150, 7, TDT_PENDING, 0, "", "", 0);
	maker_identity(maker, ring, TDT_EVENT_END, 205, 8, TDT_PANICKED, 0, "", "", 0);
	maker_poll(maker, ring, 200, 10, 8, TDT_PANICKED);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 150 ended ");
	ck_assert_str_eq(steps_of(8), "200 polling 205 polling 210 ended ");
}

TEST(what_follows_a_poll_that_was_remarkable_is_unknown)
{
	unsigned remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 11);

	maker_poll(maker, remarkable, 100, 10, 7, TDT_PENDING);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 110 unknown 200 polling 210 waiting ");
}

TEST(nothing_is_known_after_a_stop)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, ring, 120, 7, 0);
	maker_event(maker, other, .kind = TDT_EVENT_STOP, .time = 150);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 120 runnable<1 150 unknown "
				      "200 polling 210 waiting ");
}

/* "110-150 waiting ": the phases of task 7 that are over, and what goes on at the end. */
static const char *phases_of_7(void)
{
	struct tdt__timeline_phase phase;
	struct tdt__timeline timeline;
	struct tdt__step step;
	size_t n = 0;

	open_block();
	ck_assert_int_eq(tdt__timeline_begin(&timeline, recording), 0);
	while (tdt__timeline_next(&timeline, &step))
		if (is_of(&step, 7) && tdt__step_ends_phase(&step, &phase))
			n +=
			    (size_t)sprintf(text + n, "%" PRIu64 "-%" PRIu64 " %s%s ", phase.since,
					    phase.until, names[phase.phase], phase.sure ? "" : "?");
	phase = tdt__timeline_last(&timeline.task[tdt__recording_task(recording, 7)]);
	sprintf(text + n, "%" PRIu64 "-%" PRIu64 " %s", phase.since, phase.until,
		names[phase.phase]);
	tdt__timeline_end(&timeline);
	return text;
}

static void stop_and_start(uint64_t stop, uint64_t start)
{
	maker_event(maker, other, .kind = TDT_EVENT_STOP, .time = stop);
	maker_event(maker, other, .kind = TDT_EVENT_START, .time = start);
}

static void list_waiting_since(uint64_t time, uint64_t since)
{
	const uint64_t payload[] = { 42, 5, 0, 0, 0x10, 3 };

	maker_add(maker, other,
		  (struct tdt_event){ .kind = TDT_EVENT_STATE,
				      .detail = TDT_WAIT_MUTEX,
				      .a = 1,
				      .b = TDT_STATE_IDLE,
				      .time = time,
				      .task = 7,
				      .c = since },
		  payload, sizeof payload);
}

TEST(a_wait_goes_on_over_a_pause_if_a_listing_says_so)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, "table");
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	stop_and_start(150, 250);
	ck_assert_str_eq(phases_of_7(), "0-100 unknown? 100-110 polling 110-150 waiting");
	list_waiting_since(260, 100);
	ck_assert_str_eq(phases_of_7(), "0-100 unknown? 100-110 polling 110-0 waiting");
	maker_wake(maker, other, 300, 7, 0);
	ck_assert_str_eq(phases_of_7(),
			 "0-100 unknown? 100-110 polling 110-300 waiting 300-0 runnable");
}

TEST(a_wait_that_a_pause_may_have_ended_lasted_until_the_pause)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, "table");
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	stop_and_start(150, 250);
	list_waiting_since(260, 200);
	ck_assert_str_eq(phases_of_7(), "0-100 unknown? 100-110 polling 110-150 waiting "
					"200-0 waiting");
}

TEST(a_poll_during_which_the_recorder_was_stopped_leads_to_nothing_sure)
{
	maker_event(maker, other, .kind = TDT_EVENT_STOP, .time = 150);
	maker_event(maker, other, .kind = TDT_EVENT_START, .time = 250);
	maker_poll(maker, ring, 100, 200, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 300 waiting? ");
}

TEST(a_wake_up_after_the_end_leads_to_nothing)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_READY);
	maker_identity(maker, ring, TDT_EVENT_END, 111, 7, TDT_READY, 0, "", "", 0);
	maker_wake(maker, other, 120, 7, 0);
	ck_assert_str_eq(steps_of(7), "100 polling 110 ended 111 ended 120 ended ");
}

TEST(a_task_with_the_id_of_one_that_ended_begins_anew)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_READY);
	maker_identity(maker, ring, TDT_EVENT_END, 111, 7, TDT_READY, 0, "", "", 0);
	maker_identity(maker, other, TDT_EVENT_SPAWN, 150, 7, 0, 0, "", "", 0);
	maker_poll(maker, other, 200, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 110 ended 111 ended 150 spawned 200 polling "
				      "210 waiting ");
}

/* Before the last event that found no ring, and from overwritten ones, nothing is sure. */
TEST(what_missing_events_may_have_changed_is_not_sure)
{
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 205;
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, other, 120, 7, 0);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING); /* it may have been woken in that poll */
	maker_wake(maker, other, 220, 7, 0);
	maker_poll(maker, ring, 230, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting? 120 runnable? 200 polling "
				      "210 waiting? 220 runnable<1 230 polling<1 240 waiting ");
}

static void requested(unsigned which, uint64_t begin, uint64_t duration, uint64_t task)
{
	maker_event(maker, which, .kind = TDT_EVENT_POLL,
		    .detail = TDT_EVENT_POLL_REQUESTED | TDT_PENDING, .time = begin, .task = task,
		    .a = (uint32_t)duration);
}

CASE(requests, .setup = begin, .teardown = end)

TEST(a_poll_for_a_request_does_not_end_a_wait)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, "table");
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, "table");
	requested(ring, 200, 10, 7);
	maker_wake(maker, other, 300, 7, 0);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 200 waiting 210 waiting "
				      "300 runnable<1 ");
}

TEST(a_poll_for_a_request_that_finds_another_holder_does_not_end_the_wait)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, "table");
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 4, "table");
	requested(ring, 200, 10, 7);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 200 waiting 210 waiting ");
}

TEST(a_wake_up_in_a_poll_for_a_request_ends_the_wait)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	requested(ring, 200, 10, 7);
	maker_wake(maker, other, 205, 7, 0);
	maker_poll(maker, ring, 300, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 200 waiting 205 runnable<1 "
				      "210 runnable 300 polling<1 310 waiting ");
}

TEST(a_task_that_goes_on_in_a_poll_for_a_request_waits_anew)
{
	maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 0, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wait(maker, ring, 7, TDT_WAIT_IO, 5, 0, NULL);
	requested(ring, 200, 10, 7);
	ck_assert_str_eq(steps_of(7), "100 polling 110 waiting 200 polling 210 waiting ");
}

/* The task's last poll began at 40, and it was woken at 45. */
static void list(uint64_t time, enum tdt_recorded_state state)
{
	const uint64_t payload[] = { 42, 5, 45, 0, 0x10, 3 };

	maker_add(maker, other,
		  (struct tdt_event){ .kind = TDT_EVENT_STATE, .detail = TDT_WAIT_MUTEX, .a = 1,
				      .b = (uint16_t)state, .time = time, .task = 7, .c = 40 },
		  payload, sizeof payload);
}

CASE(listings)

TEST(a_listing_says_what_no_event_does)
{
	static const char *const expected[] = { "100 waiting:40 200 polling 210 waiting ",
						"100 runnable:45 200 polling 210 waiting ",
						"100 polling:40 200 polling 210 waiting " };

	for (unsigned i = 0; i <= TDT_STATE_POLLED; i++) {
		begin();
		list(100, (enum tdt_recorded_state)i);
		maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
		ck_assert_str_eq(steps_of(7), expected[i]);
		maker_free(maker);
	}
}

TEST(a_run_that_a_listing_found_ends)
{
	begin();
	list(100, TDT_STATE_POLLED);
	run_or_wait(ring, 200, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "100 polling:40 200 waiting? ");
	maker_free(maker);
}

TEST(a_run_whose_end_may_be_missing_is_not_sure)
{
	begin();
	run_or_wait(ring, 60, 0);
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 80;
	list(100, TDT_STATE_IDLE);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	ck_assert_str_eq(steps_of(7), "60 polling? 100 waiting:40 200 polling 210 waiting ");
	maker_free(maker);
}

TEST(a_listing_is_sure_only_if_no_event_is_missing_since)
{
	begin();
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 150;
	maker_poll(maker, ring, 300, 10, 7, TDT_PENDING);
	list(100, TDT_STATE_IDLE);
	list(200, TDT_STATE_POLLED);
	list(250, TDT_STATE_IDLE);
	list(305, TDT_STATE_IDLE); /* the events say more */
	ck_assert_str_eq(steps_of(7), "100 waiting?:40 200 polling:40 250 waiting:40 300 polling "
				      "305 polling 310 waiting ");
	maker_free(maker);
}

/* --- Locks ---------------------------------------------------------------------------- */

static void hand_lock(unsigned which, uint64_t time, uint64_t to)
{
	maker_event(maker, which, .kind = TDT_EVENT_LOCK, .time = time, .task = to, .c = 0x10);
}

/* For what task 7 waits at the end. */
static struct tdt_wait last_wait(void)
{
	struct tdt__timeline timeline;
	struct tdt__step step;
	struct tdt_wait wait;
	uint32_t number;

	open_block();
	ck_assert_int_eq(tdt__timeline_begin(&timeline, recording), 0);
	while (tdt__timeline_next(&timeline, &step))
		;
	number = tdt__recording_task(recording, 7);
	ck_assert(tdt__recorded_wait(recording, &timeline.task[number].parts, 0, &wait));
	tdt__timeline_renew(&timeline, number, &timeline.task[number], &wait);
	tdt__timeline_end(&timeline);
	return wait;
}

static uint64_t last_holder(void)
{
	return last_wait().owner;
}

CASE(locks, .setup = begin, .teardown = end)

TEST(the_holder_is_the_task_to_which_the_lock_was_handed_last)
{
	hand_lock(other, 50, 9);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, "table");
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	ck_assert_uint_eq(last_holder(), 3);
	hand_lock(other, 150, 4);
	hand_lock(other, 160, 5);
	ck_assert_uint_eq(last_holder(), 5);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 6, "table");
	requested(ring, 200, 10, 7);
	ck_assert_uint_eq(last_holder(), 6);
}

TEST(a_lock_that_is_handed_to_the_waiter_was_held_by_another_one_until_then)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	hand_lock(other, 150, 7);
	ck_assert_uint_eq(last_holder(), 3);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, NULL);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	hand_lock(other, 250, 4);
	hand_lock(other, 260, 7);
	ck_assert_uint_eq(last_holder(), 4);
}

/* A listing says it of the lock that it has read, and of no other. */
/* 0: so it is, 1: it is another lock, 2: the listing is of an older library, 3: handed on */
TEST(a_lock_is_orphaned_if_a_listing_says_so_and_it_was_not_handed_on, .to = 4)
{
	const uint64_t payload[] = { 42, 5, 45, 0, 0x10, 3, 1 };

	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, _i == 1 ? 0x20 : 0x10, 3, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_add(maker, other,
		  (struct tdt_event){ .kind = TDT_EVENT_STATE, .detail = TDT_WAIT_MUTEX, .a = 1,
				      .time = 200, .task = 7, .c = 100 },
		  payload, _i == 2 ? 6 * sizeof payload[0] : sizeof payload);
	if (_i == 3)
		hand_lock(other, 300, 4);
	ck_assert_uint_eq(last_wait().orphaned, _i == 0);
}

TEST(a_listing_names_the_present_holder)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 9, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	list(200, TDT_STATE_IDLE);
	ck_assert_uint_eq(last_holder(), 3);
	hand_lock(ring, 250, 4);
	ck_assert_uint_eq(last_holder(), 4);
}

CASE(phases)

static int begin_and_end(void *argument)
{
	struct tdt__timeline timeline;
	int err = tdt__timeline_begin(&timeline, argument);

	if (err == 0)
		tdt__timeline_end(&timeline);
	return err;
}

TEST(without_memory_beginning_says_so)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	open_block();
	no_memory_each(begin_and_end, recording, 3);
}
