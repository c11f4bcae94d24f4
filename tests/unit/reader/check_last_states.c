// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers reader/last_states, reader/last_dump.  What a recording proves of its tasks at its end,
 * and the trees that are made of its stacks.
 */

#include "lib/made_recording.h"
#include "lib/test.h"
#include "reader/last_dump.h"
#include "reader/last_states.h"
#include "symbolize/modules.h"
#include "tree/stacks.h"
#include "tree/trace.h"

#define END 1000 /* of the recording, ns */

static unsigned ring, other;
static struct tdt__last_states states;
static char text[4096];

static void begin(void)
{
	end();
	maker = maker_new();
	maker_header(maker)->taken = END;
	ring = maker_ring(maker, TDT_RING_POLLS, 64, 11);
	other = maker_ring(maker, TDT_RING_POLLS, 64, 12);
}

static size_t describe(char *to, const struct tdt__seen_task *task)
{
	static const char *const words[] = { "waiting",	 "polling",  "ready",
					     "panicked", "runnable", "unknown" };
	const struct tdt_task_info *info = &task->member.info;
	size_t n = (size_t)sprintf(to, "%" PRIu64 " %s", info->id, words[info->state]);

	if (task->last != NULL)
		n += (size_t)sprintf(to + n, "(%s)", task->last);
	if (info->state_ns != 0)
		n += (size_t)sprintf(to + n, " %" PRIu64, info->state_ns);
	if (info->n_waits != 0)
		n += (size_t)sprintf(to + n, " for %" PRIu64, task->wait.owner);
	return n + (size_t)sprintf(to + n, ", ");
}

/* All tasks: "7 waiting 300 for 4, ": for so many ns, for what task 4 holds. */
static const char *last_states(void)
{
	size_t n = 0;

	open_block();
	ck_assert_int_eq(tdt__last_states_read(&states, recording), 0);
	text[0] = '\0';
	for (size_t i = 0; i < states.tasks.n; i++)
		n += describe(text + n, &states.tasks.task[i]);
	tdt__last_states_fini(&states);
	return text;
}

/* Events of another task that overwrite all that the ring had before, until `time`. */
static void wrap(unsigned which, uint64_t time)
{
	for (unsigned i = 0; i < 64; i++)
		maker_poll(maker, which, time - 64 + i, 1, 99, TDT_READY);
}

CASE(states, .setup = begin, .teardown = end)

TEST(each_task_is_in_the_state_to_which_its_last_event_led)
{
	maker_poll(maker, ring, 100, 10, 4, TDT_PENDING);
	maker_poll(maker, ring, 200, 10, 5, TDT_PENDING);
	maker_wake(maker, other, 300, 5, 0);
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 400, 6, 0, 4, "new", "a.c", 1);
	maker_poll(maker, ring, 500, 10, 7, TDT_READY);
	maker_poll(maker, ring, 600, 10, 8, TDT_PENDING);
	maker_identity(maker, other, TDT_EVENT_END, 700, 8, TDT_PENDING, 0, "", "", 0);
	ck_assert_str_eq(last_states(), "4 waiting 890, 5 runnable 700, 6 waiting 600, ");
}

TEST(a_run_is_a_poll_that_goes_on_until_the_task_waits)
{
	for (unsigned i = 0; i < 2; i++) {
		begin();
		maker_event(maker, ring, .kind = TDT_EVENT_RUN, .time = 100, .task = 7);
		if (i == 1)
			maker_event(maker, ring, .kind = TDT_EVENT_RUN, .detail = TDT_PENDING,
				    .time = 300, .task = 7);
		ck_assert_str_eq(last_states(), i == 0 ? "7 polling 900, " : "7 waiting 700, ");
	}
}

TEST(a_task_with_the_id_of_one_that_ended_lives)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_READY);
	maker_identity(maker, ring, TDT_EVENT_END, 111, 7, TDT_READY, 0, "", "", 0);
	maker_identity(maker, other, TDT_EVENT_SPAWN, 150, 7, 0, 0, "", "", 0);
	maker_poll(maker, other, 200, 10, 7, TDT_PENDING);
	open_block();
	ck_assert_int_eq(tdt__last_states_read(&states, recording), 0);
	ck_assert_uint_eq(states.tasks.n, 1);
	ck_assert_int_eq(states.tasks.task[0].member.info.state, TDT_TASK_WAITING);
	ck_assert_uint_eq(states.tasks.task[0].member.info.polls, 1);
	tdt__last_states_fini(&states);
}

TEST(a_poll_that_goes_on_at_the_end_is_one)
{
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_entry(maker, ring)->task = 7;
	maker_entry(maker, ring)->since = 900;
	ck_assert_str_eq(last_states(), "7 polling 100, ");
}

TEST(the_waits_of_the_last_poll_last)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 0, NULL);
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x20, 4, "table");
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	maker_wait(maker, ring, 8, TDT_WAIT_MUTEX, 0x20, 4, NULL);
	maker_poll(maker, ring, 300, 10, 8, TDT_PENDING);
	maker_wake(maker, ring, 400, 8, 0); /* it waits no more */
	ck_assert_str_eq(last_states(), "7 waiting 790 for 4, 8 runnable 600, ");
}

TEST(a_lock_that_was_passed_on_has_another_holder)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_event(maker, other, .kind = TDT_EVENT_LOCK, .time = 150, .task = 4, .c = 0x10);
	ck_assert_str_eq(last_states(), "7 waiting 890 for 4, ");
}

TEST(a_wait_for_a_task_says_more_than_one_for_a_timer)
{
	maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 0, NULL);
	maker_wait(maker, ring, 7, TDT_WAIT_TASK, 0, 4, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	ck_assert_str_eq(last_states(), "7 waiting 890 for 4, ");
}

TEST(a_task_that_was_listed_in_a_poll_is_polled)
{
	const uint64_t payload[] = { 42, 50, 0, 0, 0, 0 };

	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 200; /* a poll of 7, or its end */
	maker_add(maker, maker_ring(maker, TDT_RING_SERVICE, 64, 0),
		  (struct tdt_event){ .kind = TDT_EVENT_STATE, .b = TDT_STATE_POLLED, .time = 600,
				      .task = 7, .a = 11, .c = 300 },
		  payload, sizeof payload);
	ck_assert_str_eq(last_states(), "7 polling 700, ");
}

TEST(what_lost_events_may_have_changed_is_unknown)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 3, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_poll(maker, ring, 120, 10, 6, TDT_PENDING);
	maker_wake(maker, ring, 150, 6, 0);
	maker_poll(maker, ring, 800, 10, 8, TDT_PENDING);
	maker_poll(maker, other, 110, 10, 9, TDT_PENDING);
	wrap(other, 500);
	wrap(other, 700);
	maker_entry(maker, ring)->task = 5;
	maker_entry(maker, ring)->since = 900;
	ck_assert_str_eq(last_states(), "7 unknown(waiting) for 3, 6 unknown(runnable), "
					"8 waiting 190, 5 polling 100, ");
}

TEST(only_tasks_with_an_identity_live_without_events)
{
	unsigned remarkable, service;

	remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 11);
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 0);
	maker_identity(maker, remarkable, TDT_EVENT_TASK, 110, 6, 0, 0, "remarkable", "a.c", 1);
	maker_poll(maker, remarkable, 100, 10, 6, TDT_PENDING);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	maker_identity(maker, service, TDT_EVENT_TASK, 300, 8, 0, 0, "idle", "a.c", 1);
	ck_assert_str_eq(last_states(), "7 waiting 790, 8 unknown, ");
}

/* Two tasks of which only the identities are left, from before and after a listing. */
static unsigned begin_listed(uint64_t listed)
{
	unsigned service;

	begin();
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 0);
	maker_header(maker)->listed = listed;
	maker_poll(maker, ring, 100, 10, 4, TDT_PENDING);
	maker_identity(maker, service, TDT_EVENT_TASK, 200, 5, 0, 0, "gone", "a.c", 1);
	maker_identity(maker, service, TDT_EVENT_TASK, 400, 6, 0, 0, "idle", "a.c", 1);
	return service;
}

TEST(a_task_that_a_later_listing_lacks_had_ended)
{
	begin_listed(0);
	ck_assert_str_eq(last_states(), "4 waiting 890, 5 unknown, 6 unknown, ");
	begin_listed(300);
	ck_assert_str_eq(last_states(), "4 waiting 890, 6 unknown, "); /* 4 need not be traced */
}

TEST(a_listing_that_is_overwritten_in_part_says_nothing)
{
	unsigned service;

	begin_listed(300);
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 250, 9, 0, 0x1000, "early", "a.c", 1);
	ck_assert_str_eq(last_states(), "4 waiting 890, 6 unknown, ");
	service = begin_listed(300);
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 250, 9, 0, 0x1000, "early", "a.c", 1);
	for (unsigned i = 0; i < 40; i++)
		maker_identity(maker, service, TDT_EVENT_TASK, 500 + i, 7, 0, 0, "many", "a.c", 1);
	ck_assert_str_eq(last_states(), "4 waiting 890, 9 waiting 750, 7 unknown, ");
}

/* A listing of the task at `time`, which has waited since 150 for what task 3 has. */
static void list_state(unsigned service, uint64_t time, uint64_t id, uint16_t woken)
{
	const uint64_t payload[] = { 42, 50, woken != 0 ? 250 : 0, 9, 0x10, 3 };
	const struct tdt_event event = { .kind = TDT_EVENT_STATE, .detail = TDT_WAIT_MUTEX,
					 .a = 1, .b = woken, .time = time, .task = id, .c = 150 };

	maker_add(maker, service, event, payload, sizeof payload);
}

TEST(a_listing_proves_a_state_if_no_later_event_is_lost)
{
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 0);

	maker_poll(maker, ring, 100, 10, 4, TDT_PENDING);
	maker_poll(maker, ring, 110, 10, 5, TDT_PENDING);
	maker_poll(maker, ring, 120, 10, 6, TDT_PENDING);
	wrap(other, 200);
	wrap(other, 300);
	list_state(service, 280, 4, 0); /* all of it is before the gap ends */
	wrap(other, 500);
	list_state(service, 600, 5, 0);
	list_state(service, 600, 6, 1);
	list_state(service, 600, 7, 0);
	maker_poll(maker, ring, 700, 10, 7, TDT_PENDING);
	ck_assert_str_eq(last_states(), "4 unknown(waiting) for 3, 5 waiting 850 for 3, "
					"6 runnable 750, 7 waiting 290, ");
}

/* What a record has of the time is up to 4 ms late: behind that of an earlier poll. */
TEST(a_listing_of_an_earlier_time_says_for_what_a_task_waits)
{
	maker_wait(maker, ring, 7, TDT_WAIT_TIMER, 0, 9, NULL);
	maker_poll(maker, ring, 160, 10, 7, TDT_PENDING);
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 200; /* a poll of 7 */
	list_state(maker_ring(maker, TDT_RING_SERVICE, 64, 0), 600, 7, 0);
	ck_assert_str_eq(last_states(), "7 waiting 830 for 3, ");
}

TEST(a_task_whose_run_and_end_are_lost_does_not_run)
{
	maker_identity(maker, ring, TDT_EVENT_SPAWN, 90, 7, 0, 0x1000, "gone", "a.c", 1);
	maker_event(maker, ring, .kind = TDT_EVENT_RUN, .time = 100, .task = 7);
	maker_poll(maker, ring, 110, 10, 8, TDT_PENDING);
	maker_header(maker)->missed = 1;
	maker_header(maker)->missed_last = 200;
	ck_assert_str_eq(last_states(), "7 unknown(polling), 8 unknown(waiting), ");
	list_state(maker_ring(maker, TDT_RING_SERVICE, 64, 0), 600, 8, 0);
	maker_header(maker)->listed = 590;
	ck_assert_str_eq(last_states(), "8 waiting 850 for 3, ");
}

TEST(polls_are_counted_from_a_listing_on)
{
	const struct tdt_task_info *info;

	list_state(maker_ring(maker, TDT_RING_SERVICE, 64, 0), 200, 7, 1);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_poll(maker, ring, 300, 10, 7, TDT_PENDING);
	open_block();
	ck_assert_int_eq(tdt__last_states_read(&states, recording), 0);
	info = &states.tasks.task[0].member.info;
	ck_assert_uint_eq(info->polls, 43);
	ck_assert_uint_eq(info->spawned_ns, 950);
	ck_assert_int_eq(info->state, TDT_TASK_WAITING);
	ck_assert_uint_eq(info->state_ns, 690);
	tdt__last_states_fini(&states);
}

TEST(facts_of_a_task_are_relative_to_the_end)
{
	const struct tdt_task_info *info;

	maker_identity(maker, ring, TDT_EVENT_SPAWN, 50, 7, 0, 3, "conn", "a.c", 12);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wake(maker, other, 200, 7, 4);
	maker_poll(maker, ring, 300, 10, 7, TDT_PENDING);
	open_block();
	ck_assert_int_eq(tdt__last_states_read(&states, recording), 0);
	ck_assert_uint_eq(states.tasks.n, 1);
	info = &states.tasks.task[0].member.info;
	ck_assert_str_eq(info->name, "conn");
	ck_assert_str_eq(info->file, "a.c");
	ck_assert_uint_eq(info->line, 12);
	ck_assert_uint_eq(info->parent, 3);
	ck_assert_uint_eq(info->polls, 2);
	ck_assert_uint_eq(info->woken_ns, 800);
	ck_assert_uint_eq(info->woken_by, 4);
	ck_assert_uint_eq(info->spawned_ns, 950);
	ck_assert_uint_eq(info->polled_ns, 700);
	tdt__last_states_fini(&states);
}

/* 0: it was spawned so, 1: a listing says so, 2: of a task like any other */
TEST(a_task_that_blocks_is_known_as_one, .to = 3)
{
	const struct tdt_event event = { .kind = _i == 1 ? TDT_EVENT_TASK : TDT_EVENT_SPAWN,
					 .detail = _i == 2 ? 0 : TDT_EVENT_TASK_BLOCKING,
					 .time = 50,
					 .task = 7,
					 .c = 0x1000 };

	maker_add(maker, ring, event, (char[18]){ 0 }, 18);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	open_block();
	ck_assert_int_eq(tdt__last_states_read(&states, recording), 0);
	ck_assert_uint_eq(states.tasks.n, 1);
	ck_assert_uint_eq(states.tasks.task[0].member.info.blocking, _i != 2);
	tdt__last_states_fini(&states);
}

static struct tdt__findings *findings;
static struct tdt__modules *modules;

static void dump(void)
{
	const struct tdt__task_choice all = { .n_ids = 0 };

	open_block();
	ck_assert_int_eq(tdt__last_states_read(&states, recording), 0);
	modules = tdt__modules_new(0);
	findings = tdt__last_dump(&states, &all, modules);
	ck_assert_ptr_nonnull(findings);
	ck_assert_uint_eq(findings->public.recorded, 1);
	ck_assert_uint_eq(findings->public.outside, 1);
}

static void end_dump(void)
{
	tdt__findings_free(findings);
	tdt__modules_unref(modules);
	tdt__last_states_fini(&states);
	end();
}

static void expect_pcs(const struct tdt_snapshot_group *group, uint32_t index, uint64_t inner,
		       uint64_t outer)
{
	uint64_t pcs[4];
	enum tdt_cut cut;

	ck_assert_uint_eq(tdt_trace_stack(group->trace, index, pcs, 4, &cut), 2);
	ck_assert_uint_eq(pcs[0], inner);
	ck_assert_uint_eq(pcs[1], outer);
	ck_assert_int_eq(cut, TDT_CUT_NOT);
}

CASE(trees, .teardown = end_dump, .setup = begin)

TEST(the_last_stacks_of_leaves_are_the_tree)
{
	static const uint64_t one[] = { 0x100, 0x300 }, two[] = { 0x200, 0x300 };
	const struct tdt_snapshot_group *group;

	maker_leaf(maker, ring, 7, maker_stack(maker, one, 2, TDT_CUT_NOT), 0, 3);
	maker_leaf(maker, ring, 7, maker_stack(maker, two, 2, TDT_CUT_NOT), 1, 3);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_poll(maker, ring, 200, 10, 7, TDT_PENDING);
	dump();
	ck_assert_uint_eq(findings->public.n_groups, 1);
	group = findings->public.groups[0];
	ck_assert_int_eq(group->answer, TDT_ANSWER_LAST);
	expect_pcs(group, 0, 0x100, 0x300);
	expect_pcs(group, 1, 0x200, 0x300);
	ck_assert_uint_eq(group->tasks[0]->leaves, 2);
	ck_assert_uint_eq(group->tasks[0]->leaves_lost, 1);
	ck_assert_uint_eq(group->tasks[0]->age_ns, END - 110);
	ck_assert_uint_eq(group->tasks[0]->polls_since, 1);
}

TEST(the_stack_that_was_found_in_a_poll_is_the_tree_of_that_poll)
{
	static const uint64_t pcs[] = { 0x100, 0x300 };
	const struct tdt_snapshot_group *const *groups;
	unsigned service = maker_ring(maker, TDT_RING_SERVICE, 64, 0);
	uint32_t stack = maker_stack(maker, pcs, 2, TDT_CUT_NOT);

	maker_poll(maker, other, 100, 400, 8, TDT_PENDING);
	maker_event(maker, service, .kind = TDT_EVENT_STACK, .a = stack, .time = 300, .task = 8,
		    .c = 12);
	maker_event(maker, service, .kind = TDT_EVENT_STACK, .a = stack, .time = 950, .task = 7,
		    .c = 11);
	maker_entry(maker, ring)->task = 7;
	maker_entry(maker, ring)->since = 900;
	dump();
	ck_assert_uint_eq(findings->public.n_groups, 2);
	groups = findings->public.groups;
	ck_assert_int_eq(groups[0]->answer, TDT_ANSWER_RUNNING);
	ck_assert_uint_eq(groups[0]->tasks[0]->id, 7);
	ck_assert_uint_eq(groups[0]->tasks[0]->thread, 11);
	ck_assert_uint_eq(groups[0]->tasks[0]->age_ns, 50);
	expect_pcs(groups[0], 0, 0x100, 0x300);
	ck_assert_int_eq(groups[1]->answer, TDT_ANSWER_NONE);
	ck_assert_ptr_null(groups[1]->trace);
}

/* The rings have lost the polls between a captured one, which was remarkable, and the last one. */
static void lose_polls(bool listed_before)
{
	static const uint64_t pcs[] = { 0x100, 0x300 };
	const uint64_t payload[] = { 2, 50, 0, 0, 0, 0 }, later[] = { 42, 50, 0, 0, 0, 0 };
	struct tdt_event state = { .kind = TDT_EVENT_STATE, .time = 90, .task = 7, .c = 80 };
	unsigned remarkable, service;

	begin();
	remarkable = maker_ring(maker, TDT_RING_REMARKABLE, 64, 11);
	service = maker_ring(maker, TDT_RING_SERVICE, 64, 0);
	if (listed_before)
		maker_add(maker, service, state, payload, sizeof payload);
	maker_leaf(maker, remarkable, 7, maker_stack(maker, pcs, 2, TDT_CUT_NOT), 0, 1);
	maker_poll(maker, remarkable, 100, 10, 7, TDT_PENDING);
	wrap(ring, 300);
	wrap(ring, 400);
	state.time = 500;
	state.c = 250;
	maker_add(maker, service, state, later, sizeof later);
	dump();
	ck_assert_uint_eq(findings->public.n_groups, 1);
	ck_assert_int_eq(findings->public.groups[0]->tasks[0]->state, TDT_TASK_WAITING);
}

TEST(a_stack_of_an_earlier_poll_is_not_shown_as_the_last)
{
	lose_polls(false);
	ck_assert_int_eq(findings->public.groups[0]->answer, TDT_ANSWER_NONE);
	end_dump();
	lose_polls(true);
	ck_assert_int_eq(findings->public.groups[0]->answer, TDT_ANSWER_LAST);
	ck_assert_uint_eq(findings->public.groups[0]->tasks[0]->polls_since, 39);
}

TEST(a_stack_that_is_not_there_is_no_tree)
{
	maker_leaf(maker, ring, 7, 12345, 0, 1);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	dump();
	ck_assert_int_eq(findings->public.groups[0]->answer, TDT_ANSWER_NONE);
	ck_assert_uint_eq(findings->public.groups[0]->tasks[0]->age_ns, 0);
}

TEST(a_ring_of_waits_is_no_deadlock)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 8, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	maker_wait(maker, ring, 8, TDT_WAIT_MUTEX, 0x20, 7, NULL);
	maker_poll(maker, ring, 200, 10, 8, TDT_PENDING);
	dump();
	ck_assert_uint_eq(findings->public.n_cycles, 1);
	ck_assert_uint_eq(findings->public.cycles[0]->n, 2);
	ck_assert_uint_eq(findings->public.cycles[0]->deadlock, 0);
}

/* --- Memory ------------------------------------------------------------------------------- */

static int read_states(void *argument)
{
	int err = tdt__last_states_read(&states, argument);

	if (err == 0)
		tdt__last_states_fini(&states);
	return err;
}

CASE(states)

TEST(without_memory_reading_says_so)
{
	maker_wait(maker, ring, 7, TDT_WAIT_MUTEX, 0x10, 8, NULL);
	maker_poll(maker, ring, 100, 10, 7, TDT_PENDING);
	open_block();
	no_memory_each(read_states, recording, 6);
}
