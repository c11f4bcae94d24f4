// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/reported, task/hooked.  Tasks that nobody traces, and that their runtime reports:
 * what their records say, how they are found by their ids, and what becomes of the record if the
 * task is traced as well.
 */

#include <tdt/integrate/hooks.h>

#include "lib/gate.h"
#include "lib/hand.h"
#include "lib/requester.h"
#include "lib/stuck_task.h"
#include "lib/test.h"
#include "task/reported.h"

static const struct tdt_task_attr seven = {
	.size = sizeof seven, .id = 7, .file = "runtime.rs", .line = 9, .column = 5
};

static int note_info(struct tdt_handle *handle, const struct tdt_task_info *info, void *copy)
{
	*(struct tdt_task_info *)copy = *info;
	return 0;
}

static struct tdt_task_info info_of(uint64_t id)
{
	struct tdt_handle *task = tdt_task_find(id);
	struct tdt_task_info info;

	MUST(task != NULL && tdt_task_inspect(task, note_info, &info) == 0);
	tdt_handle_unref(task);
	return info;
}

static int count(struct tdt_handle *handle, const struct tdt_task_info *info, void *n)
{
	++*(int *)n;
	return 0;
}

static int tasks(void)
{
	int n = 0;

	MUST(tdt_tasks(NULL, count, &n) == 0);
	return n;
}

static void report_poll(const struct tdt_task_attr *attr)
{
	tdt_hook_poll_start(attr);
	tdt_hook_poll_end(attr);
}

static void report_end(const struct tdt_task_attr *attr)
{
	tdt_hook_poll_start(attr);
	tdt_hook_terminate(attr);
	tdt_hook_poll_end(attr);
}

CASE(records)

TEST(a_reported_task_is_listed_with_its_place_and_its_polls)
{
	struct tdt_task_info info;

	tdt_hook_spawn(&seven);
	info = info_of(7);
	ck_assert_uint_eq(info.untraced, 1);
	ck_assert_int_eq(info.state, TDT_TASK_WAITING);
	ck_assert_uint_eq(info.polls, 0);
	ck_assert_str_eq(info.file, "runtime.rs");
	ck_assert_uint_eq(info.line, 9);
	ck_assert_uint_eq(info.column, 5);
	report_poll(&seven);
	tdt_hook_poll_start(&seven);
	info = info_of(7);
	ck_assert_int_eq(info.state, TDT_TASK_RUNNING);
	ck_assert_uint_eq(info.thread, (uint32_t)gettid());
	ck_assert_uint_eq(info.polls, 2);
	tdt_hook_poll_end(&seven);
	ck_assert_int_eq(info_of(7).state, TDT_TASK_WAITING);
	ck_assert_int_eq(tasks(), 1);
	tdt_hook_terminate(&seven);
	ck_assert_int_eq(tasks(), 0);
}

TEST(a_request_is_answered_at_once_and_says_that_there_is_no_tree)
{
	struct tdt_handle *task;
	const struct tdt_node *node;

	tdt_hook_spawn(&seven);
	report_poll(&seven);
	task = tdt_task_find(7);
	TRACE(trace, tdt_backtrace(task));
	node = tdt_node_first_child(tdt_trace_root(trace));
	ck_assert_ptr_nonnull(strstr(tdt_node_frame(node)->function, "not traced: no tree"));
	ck_assert_ptr_null(tdt_node_first_child(node));
	ck_assert_int_eq(tdt_trace_info(trace)->leaves_known, TDT_LEAVES_UNKNOWN);
	ck_assert_uint_eq(tdt_trace_info(trace)->untraced, 1);
	tdt_handle_unref(task);
	tdt_hook_terminate(&seven);
}

static _Atomic uint64_t racing;

static uint64_t last_race(void)
{
	return 1000 + times_here(5000);
}

static void *end_all(void *unused)
{
	struct tdt_task_attr attr = { .size = sizeof attr };

	for (attr.id = 1000; attr.id < last_race(); attr.id++) {
		while (racing < attr.id)
			sched_yield();
		tdt_hook_terminate(&attr);
	}
	return unused;
}

/* As a runtime does that shuts down: on another thread, before the spawn and during it. */
TEST(a_task_whose_end_is_reported_first_is_not_listed)
{
	struct tdt_task_attr attr = { .size = sizeof attr };
	pthread_t thread;

	tdt_hook_terminate(&seven);
	tdt_hook_spawn(&seven);
	ck_assert_ptr_null(tdt_task_find(7));
	ck_assert_int_eq(pthread_create(&thread, NULL, end_all, NULL), 0);
	for (attr.id = 1000; attr.id < last_race(); attr.id++) {
		racing = attr.id;
		tdt_hook_spawn(&attr);
	}
	pthread_join(thread, NULL);
	for (attr.id = 1000; attr.id < last_race(); attr.id++)
		ck_assert_ptr_null(tdt_task_find(attr.id));
}

TEST(in_its_poll_a_task_is_the_current_one_and_reports_what_it_waits_for)
{
	const struct tdt_task_attr child = { .size = sizeof child, .id = 8 };

	tdt_hook_spawn(&seven);
	tdt_hook_poll_start(&seven);
	ck_assert_uint_eq(tdt_current_task_id(), 7);
	tdt_hook_spawn(&child);
	tdt_leaf_waits_on(TDT_WAIT_MUTEX, &seven, 8);
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_uint_eq(info_of(8).parent, 7);
	ck_assert_uint_eq(info_of(7).n_waits, 1);
	tdt_hook_terminate(&child);
	tdt_hook_terminate(&seven);
}

TEST(it_is_not_the_programs_to_enter_or_to_end)
{
	struct tdt_handle *task;

	tdt_hook_spawn(&seven);
	task = tdt_task_find(7);
	ck_assert_ptr_nonnull(task);
	tdt_task_enter(task);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_int_eq(info_of(7).state, TDT_TASK_WAITING);
	tdt_hook_poll_start(&seven);
	tdt_task_leave(task);
	tdt_task_end(task);
	ck_assert_uint_eq(tdt_current_task_id(), 7);
	ck_assert_int_eq(info_of(7).state, TDT_TASK_RUNNING);
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(info_of(7).polls, 1);
	tdt_handle_unref(task);
	tdt_hook_terminate(&seven);
	ck_assert_int_eq(tasks(), 0);
}

TEST(it_is_ready_or_has_panicked_or_was_dropped)
{
	static const enum tdt_task_state states[] = { TDT_TASK_READY, TDT_TASK_PANICKED,
						      TDT_TASK_PANICKED };
	struct tdt_counts counts = { .size = sizeof counts };

	for (int i = 0; i < 3; i++) {
		struct tdt_task_attr attr = { .size = sizeof attr, .id = 10 + (uint64_t)i };
		struct tdt_task_info info;

		tdt_hook_spawn(&attr);
		HANDLE(task, tdt_task_find(attr.id));
		attr.flags = i == 1 ? TDT_ATTR_PANICKED : 0;
		if (i < 2)
			report_end(&attr);
		else
			tdt_hook_terminate(&attr);
		ck_assert_int_eq(tdt_task_inspect(task, note_info, &info), 0);
		ck_assert_int_eq(info.state, states[i]);
	}
	ck_assert_int_eq(tdt_counters(&counts), 0);
	ck_assert_uint_eq(counts.panicked, 1);
	ck_assert_uint_eq(counts.spawned, 3);
	ck_assert_uint_eq(counts.ended, 3);
}

TEST(a_task_whose_spawn_was_not_reported_has_a_record_from_its_first_poll_on)
{
	report_poll(&seven);
	ck_assert_uint_eq(info_of(7).polls, 1);
	tdt_hook_terminate(&seven);
	ck_assert_int_eq(tasks(), 0);
}

/* The next task of the thread gets the record. */
TEST(nothing_of_a_task_that_has_ended_is_said_of_the_next)
{
	const struct tdt_task_attr first = { .size = sizeof first,
					     .id = 7,
					     .name = "first",
					     .file = "runtime.rs",
					     .line = 9,
					     .flags = TDT_ATTR_PARENT,
					     .parent = 5,
					     .entry = (uintptr_t)tasks };
	const struct tdt_task_attr next = { .size = sizeof next, .id = 8 };
	struct tdt_task_info info;

	tdt_hook_spawn(&first);
	tdt_hook_poll_start(&first);
	tdt_leaf_waits_on(TDT_WAIT_MUTEX, &first, 5);
	tdt_hook_poll_end(&first);
	ck_assert_uint_eq(info_of(7).n_waits, 1);
	tdt_hook_terminate(&first);
	tdt_hook_spawn(&next);
	ck_assert_ptr_null(tdt_task_find(7));
	info = info_of(8);
	ck_assert_ptr_null(info.name);
	ck_assert_ptr_null(info.file);
	ck_assert_uint_eq(info.line, 0);
	ck_assert_uint_eq(info.parent, 0);
	ck_assert_uint_eq(info.polls, 0);
	report_poll(&next); /* of the same number as the one that waited */
	ck_assert_uint_eq(info_of(8).n_waits, 0);
	tdt_hook_terminate(&next);
	ck_assert_int_eq(tasks(), 0);
}

TEST(the_next_task_gets_no_record_that_somebody_refers_to)
{
	const struct tdt_task_attr next = { .size = sizeof next, .id = 8 };
	struct tdt_task_info info;
	struct tdt_handle *task;

	tdt_hook_spawn(&seven);
	task = tdt_task_find(7);
	report_end(&seven);
	tdt_hook_spawn(&next);
	ck_assert_int_eq(tdt_task_inspect(task, note_info, &info), 0);
	ck_assert_uint_eq(info.id, 7);
	ck_assert_int_eq(info.state, TDT_TASK_READY);
	tdt_handle_unref(task);
	ck_assert_uint_eq(info_of(8).polls, 0);
	tdt_hook_terminate(&next);
	ck_assert_int_eq(tasks(), 0);
}

TEST(polls_inside_of_polls_are_those_of_both_tasks)
{
	const struct tdt_task_attr inner = { .size = sizeof inner, .id = 8 };

	tdt_hook_spawn(&seven);
	tdt_hook_spawn(&inner);
	tdt_hook_poll_start_at(&seven, (uintptr_t)__builtin_frame_address(0) + 4096);
	tdt_hook_poll_start(&inner);
	ck_assert_uint_eq(tdt_current_task_id(), 8);
	tdt_hook_poll_end(&inner);
	ck_assert_uint_eq(tdt_current_task_id(), 7);
	ck_assert_int_eq(info_of(7).state, TDT_TASK_RUNNING);
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	tdt_hook_terminate(&inner);
	tdt_hook_terminate(&seven);
}

TEST(a_poll_whose_end_was_lost_is_over_when_the_next_one_begins)
{
	const struct tdt_task_attr next = { .size = sizeof next, .id = 8 };

	for (const struct tdt_task_attr *attr = &seven; attr != NULL;
	     attr = attr == &seven ? &next : NULL)
		tdt_hook_poll_start(attr);
	ck_assert_int_eq(info_of(7).state, TDT_TASK_WAITING);
	tdt_hook_poll_end(&next);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	tdt_hook_terminate(&next);
	tdt_hook_terminate(&seven);
}

TEST(a_task_whose_end_was_reported_before_its_spawn_has_no_record)
{
	struct tdt_traced traced;
	struct test_future leaf = { .name = 'a', .pending = 1 };

	tdt_hook_terminate(&seven);
	tdt_hook_spawn(&seven);
	ck_assert_int_eq(tasks(), 0);
	traced = tdt_traced_with(test_future(&leaf), TDT_TASK_ATTR(.id_later = 1));
	tdt_hook_terminate(&seven);
	tdt_hook_adopt(traced.handle, 7);
	tdt_hook_spawn(&seven);
	ck_assert_int_eq(tasks(), 1);
	ck_assert_uint_eq(tdt_handle_id(traced.handle), 7);
	tdt_future_drop(&traced.future);
	tdt_handle_unref(traced.handle);
	ck_assert_int_eq(tasks(), 0);
}

static void *poll_and_tell_late(void *unused)
{
	tdt_hook_poll_start(&seven);
	gate_stay();
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	return unused;
}

/* By the thread that polled it, or by another, which has a reference or none. */
TEST(a_task_may_end_before_the_end_of_its_last_poll_is_reported, .to = 2)
{
	struct tdt_handle *task = NULL;
	pthread_t thread;

	tdt_hook_spawn(&seven);
	if (_i == 1)
		task = tdt_task_find(7);
	gate_hold(&thread, false, poll_and_tell_late, NULL);
	tdt_hook_terminate(&seven);
	gate_release(thread);
	ck_assert_int_eq(tasks(), 0);
	tdt_handle_unref(task);
	tdt_hook_spawn(&seven);
	ck_assert_uint_eq(info_of(7).polls, 0);
	tdt_hook_terminate(&seven);
}

/* The link of the fiber is in the chain of the other thread, so that of this poll is in none. */
TEST(a_request_during_a_poll_that_began_before_the_end_of_the_last_one_is_answered_at_its_end)
{
	struct tdt_handle *task;
	struct test_requester requester;
	pthread_t thread;

	tdt_hook_spawn(&seven);
	task = tdt_task_find(7);
	gate_hold(&thread, false, poll_and_tell_late, NULL);
	tdt_hook_poll_start(&seven);
	gate_release(thread);
	test_ask(&requester, task);
	ck_assert(!test_answered(&requester));
	tdt_hook_poll_end(&seven);
	ck_assert_uint_eq(test_answer(&requester)->untraced, 1);
	test_requester_fini(&requester);
	tdt_handle_unref(task);
	tdt_hook_terminate(&seven);
}

/* --- The stack of a poll --------------------------------------------------------------------- */

static NOINLINE void in_the_future(void)
{
	gate_stay();
	TDT_KEEP_FRAME();
}

/* As a wrapper of the hooks is called, further in than the function that polls. */
static NOINLINE void before_poll(const uintptr_t *in_frame)
{
	tdt_hook_poll_start_at(&seven, (uintptr_t)in_frame);
	TDT_KEEP_FRAME();
}

static NOINLINE void run_task(int polls)
{
	uintptr_t in_frame = 1;

	for (int i = 0; i < polls; i++) {
		before_poll(&in_frame);
		if (i == polls - 1)
			in_the_future();
		tdt_hook_poll_end(&seven);
	}
}

static NOINLINE void run_task_plainly(void)
{
	tdt_hook_poll_start(&seven);
	in_the_future();
	tdt_hook_poll_end(&seven);
}

static void *worker(void *plainly)
{
	if (plainly != NULL)
		run_task_plainly();
	else
		run_task(2);
	return NULL;
}

/* A poll that runs or is blocked, and whose beginning is reported in either way. */
TEST(the_stack_of_a_poll_that_lasts_is_read, .to = 4, .skip = stuck_impossible)
{
	const struct tdt_backtrace_options patient = { .size = sizeof patient,
						       .timeout_ns = INT64_C(20000000000) };
	bool is_seen = gate_seen(_i % 2 == 1, "in_the_future")[0] != '\0';
	struct tdt_trace *trace = NULL;
	struct tdt_handle *task;
	pthread_t thread;

	tdt_hook_spawn(&seven);
	task = tdt_task_find(7);
	gate_hold(&thread, _i % 2 == 1, worker, _i < 2 ? NULL : &thread);
	do { /* names that come late are there the next time */
		tdt_trace_free(trace);
		trace = tdt_backtrace_with(task, &patient);
		ck_assert_ptr_nonnull(trace);
	} while (is_seen && test_nodes_of(trace, "in_the_future") == 0);
	ck_assert_int_eq(tdt_trace_info(trace)->state, TDT_TASK_RUNNING);
	if (is_seen) {
		ck_assert_int_eq(gate_cut(trace), TDT_CUT_NOT);
		ck_assert_int_eq(test_nodes_of(trace, "in_the_future"), 1);
	}
	ck_assert_int_eq(test_nodes_of(trace, "worker"), 0);
	tdt_trace_free(trace);
	gate_release(thread);
	tdt_handle_unref(task);
	tdt_hook_terminate(&seven);
}

CASE(traced)

static void begin_later(struct hand *hand, int pending)
{
	memset(hand, 0, sizeof *hand);
	hand->leaf = (struct test_future){ .name = 'a', .pending = pending, .result = TDT_READY };
	test_waker_init(&hand->waker);
	hand->task = tdt_traced_with(test_future(&hand->leaf),
				     TDT_TASK_ATTR(.name = "traced", .id_later = 1));
	ck_assert_ptr_nonnull(hand->task.handle);
}

static int expect_traced(struct tdt_handle *handle, const struct tdt_task_info *info, void *nothing)
{
	ck_assert_uint_eq(info->id, 7);
	ck_assert_str_eq(info->name, "traced");
	return 0;
}

TEST(a_traced_task_takes_the_place_of_the_reported_one)
{
	struct tdt_counts counts = { .size = sizeof counts };
	struct hand hand;

	tdt_hook_spawn(&seven);
	begin_later(&hand, 1);
	tdt_hook_poll_start(&seven);
	tdt_hook_adopt(hand.task.handle, 7);
	ck_assert_int_eq(hand_poll(&hand), TDT_PENDING);
	tdt_hook_poll_end(&seven);
	ck_assert_int_eq(tasks(), 1);
	ck_assert_uint_eq(info_of(7).untraced, 0);
	ck_assert_int_eq(tdt_task_inspect(hand.task.handle, expect_traced, NULL), 0);
	tdt_hook_poll_start(&seven);
	ck_assert_int_eq(hand_poll(&hand), TDT_READY);
	tdt_hook_terminate(&seven);
	tdt_hook_poll_end(&seven);
	hand_end(&hand);
	ck_assert_int_eq(tdt_counters(&counts), 0);
	ck_assert_uint_eq(counts.spawned, 1);
	ck_assert_uint_eq(counts.ended, 1);
}

TEST(so_does_one_that_is_adopted_before_it_is_spawned)
{
	struct hand hand;

	begin_later(&hand, 1);
	tdt_hook_adopt(hand.task.handle, 7);
	tdt_hook_spawn(&seven);
	ck_assert_int_eq(tasks(), 1);
	tdt_hook_poll_start(&seven);
	ck_assert_int_eq(hand_poll(&hand), TDT_PENDING);
	tdt_hook_poll_end(&seven);
	ck_assert_int_eq(tasks(), 1);
	hand_end(&hand);
	tdt_hook_terminate(&seven);
	ck_assert_int_eq(tasks(), 0);
}

TEST(another_traced_task_may_take_the_place_of_the_first)
{
	struct tdt_counts counts = { .size = sizeof counts };
	struct hand first, second;

	begin_later(&first, 1);
	begin_later(&second, 1);
	tdt_hook_spawn(&seven);
	tdt_hook_adopt(first.task.handle, 7);
	tdt_hook_adopt(second.task.handle, 7);
	hand_end(&first);
	hand_end(&second);
	tdt_hook_terminate(&seven);
	ck_assert_int_eq(tdt_counters(&counts), 0);
	ck_assert_uint_eq(counts.spawned, 2);
	ck_assert_uint_eq(counts.ended, 2);
	ck_assert_uint_eq(counts.held, 0);
}

TEST(a_task_that_goes_on_without_the_traced_one_has_a_record_again)
{
	struct hand hand;

	begin_later(&hand, 0);
	tdt_hook_adopt(hand.task.handle, 7);
	tdt_hook_spawn(&seven);
	tdt_hook_poll_start(&seven);
	ck_assert_int_eq(hand_poll(&hand), TDT_READY);
	hand_end(&hand);
	tdt_hook_poll_end(&seven);
	report_poll(&seven);
	ck_assert_uint_eq(info_of(7).untraced, 1);
	ck_assert_int_eq(tasks(), 1);
	tdt_hook_terminate(&seven);
	ck_assert_int_eq(tasks(), 0);
}

CASE(table)

/* Ids that are in one list. */
static struct tdt_task_attr in_list(uint64_t i)
{
	return (struct tdt_task_attr){ .size = sizeof(struct tdt_task_attr),
				       .id = 3 + i * TDT__REPORTED_LISTS };
}

TEST(tasks_of_one_list_are_found_in_any_order, .to = 6)
{
	static const unsigned char orders[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
						    { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct tdt_task_attr attr;

	for (uint64_t i = 0; i < 3; i++) {
		attr = in_list(i);
		tdt_hook_spawn(&attr);
	}
	for (int gone = 0; gone < 3; gone++) {
		for (int i = gone; i < 3; i++) {
			attr = in_list(orders[_i][i]);
			report_poll(&attr);
			ck_assert_uint_eq(info_of(attr.id).polls, (uint64_t)gone + 1);
		}
		attr = in_list(orders[_i][gone]);
		tdt_hook_terminate(&attr);
		ck_assert_int_eq(tasks(), 2 - gone);
	}
}

#define LIVES 20000

/* The fibers of tasks that have ended go from list to list; an older task stays behind them. */
static void *live(void *number)
{
	const struct tdt_task_attr older = in_list(*(const uint64_t *)number);

	tdt_hook_spawn(&older);
	for (uint64_t i = 0; i < LIVES; i++) {
		struct tdt_task_attr attr = in_list(2 + i * 2 + *(const uint64_t *)number);

		attr.id += i % 4;
		tdt_hook_spawn(&attr);
		report_poll(&older);
		report_end(&attr);
	}
	tdt_hook_terminate(&older);
	return NULL;
}

TEST(threads_may_report_tasks_of_one_list_at_once)
{
	static uint64_t numbers[] = { 0, 1 };
	struct tdt_counts counts = { .size = sizeof counts };
	pthread_t thread[2];

	for (int i = 0; i < 2; i++)
		MUST(pthread_create(&thread[i], NULL, live, &numbers[i]) == 0);
	for (int i = 0; i < 2; i++)
		MUST(pthread_join(thread[i], NULL) == 0);
	ck_assert_int_eq(tasks(), 0);
	ck_assert_int_eq(tdt_counters(&counts), 0);
	/* No task was not found, and made again. */
	ck_assert_uint_eq(counts.spawned, 2 * LIVES + 2);
	ck_assert_uint_eq(counts.polls, 4 * LIVES);
}

TEST(without_memory_a_task_has_no_record_until_its_next_poll)
{
	NEEDS_FAILING_MEMORY();
	for (int first = 0; first < 4; first++) {
		const struct tdt_task_attr attr = { .size = sizeof attr,
						    .id = 20 + (uint64_t)first,
						    .file = "runtime.rs and more",
						    .file_length = 10 };

		no_memory_begin(first);
		tdt_hook_spawn(&attr);
		report_poll(&attr);
		no_memory_end();
		report_poll(&attr);
		ck_assert_uint_ge(info_of(attr.id).polls, 1);
		tdt_hook_terminate(&attr);
		ck_assert_int_eq(tasks(), 0);
	}
}
