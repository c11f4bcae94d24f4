// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers task/fibers, task/leaf.  Tasks that have only callbacks, and that a thread enters and
 * leaves: what is true of them while they run, where they wait, and what is said of wrong calls.
 */

#include <tdt/integrate/fiber.h>
#include <tdt/integrate/hooks.h>
#include <tdt/integrate/leaf.h>

#include "lib/gate.h"
#include "lib/printed.h"
#include "lib/requester.h"
#include "lib/stuck_task.h"
#include "lib/test.h"

static const struct tdt_leaf_frame calls[] = { { "serve", "/b/server.c", 10, 0 },
					       { "send", NULL, 0, 0 } };
static const struct tdt_leaf_frame others[] = { { "other", NULL, 0, 0 } };
static const struct tdt_leaf_wait waits[] = {
	{ TDT_WAIT_TIMER, 0, waits, 0, "tick" }, { TDT_WAIT_MUTEX, 0, calls, 77, "room" },
	{ TDT_WAIT_IO, 0, (void *)7, 0, NULL }
};

#define NAMED(array)                                                                               \
	.kind = TDT_LEAF_NAMED, .n = sizeof(array) / sizeof((array)[0]), .frames = (array)

static struct tdt_leaf leaf, other;
static struct tdt_handle *task;

static void set_up(void)
{
	leaf = (struct tdt_leaf){ NAMED(calls) };
	other = (struct tdt_leaf){ NAMED(others) };
	task = tdt_task_new(TDT_TASK_ATTR(.name = "request"));
	MUST(task != NULL);
	tdt_leaf_at(task, &leaf);
}

static int note_info(struct tdt_handle *handle, const struct tdt_task_info *info, void *copy)
{
	*(struct tdt_task_info *)copy = *info;
	return 0;
}

static struct tdt_task_info info_of(struct tdt_handle *handle)
{
	struct tdt_task_info info;

	MUST(tdt_task_inspect(handle, note_info, &info) == 0);
	return info;
}

/* The one stack begins with `expected`, and has `seen` further in. */
static void expect_stack(struct tdt_handle *handle, const char *expected, const char *seen)
{
	const struct tdt_backtrace_options patient = { .size = sizeof patient,
						       .timeout_ns = INT64_C(20000000000) };
	TRACE(trace, tdt_backtrace_with(handle, &patient));
	const struct tdt_node *node;
	char text[1000] = "";

	ck_assert_ptr_nonnull(trace);
	node = tdt_node_first_child(tdt_trace_root(trace));
	for (; node != NULL && strlen(text) < 800; node = tdt_node_first_child(node)) {
		const char *function = tdt_node_frame(node)->function;

		ck_assert_ptr_null(tdt_node_next_sibling(node));
		snprintf(text + strlen(text), 200, "%s ", function != NULL ? function : "?");
	}
	ck_assert_msg(strncmp(text, expected, strlen(expected)) == 0 &&
			  strstr(text + strlen(expected), seen) != NULL,
		      "%s is not %s... %s", text, expected, seen);
}

static void expect_misuse(enum tdt_misuse_kind kind)
{
	ck_assert_ptr_nonnull(tdt_misused());
	ck_assert_int_eq(tdt_misused()->kind, kind);
}

CASE(enter, .setup = set_up)

TEST(the_task_that_a_thread_has_entered_is_its_current_one)
{
	struct tdt_handle *child, *inner = tdt_task_new(TDT_TASK_ATTR());

	ck_assert_uint_eq(tdt_current_task_id(), 0);
	tdt_task_enter(task);
	ck_assert_uint_eq(tdt_current_task_id(), tdt_handle_id(task));
	ck_assert_int_eq(info_of(task).state, TDT_TASK_RUNNING);
	ck_assert_uint_eq(info_of(task).thread, (uint32_t)gettid());
	child = tdt_task_new(TDT_TASK_ATTR());
	ck_assert_uint_eq(info_of(child).parent, tdt_handle_id(task));
	tdt_task_enter(inner);
	ck_assert_uint_eq(tdt_current_task_id(), tdt_handle_id(inner));
	tdt_task_leave(inner);
	ck_assert_uint_eq(tdt_current_task_id(), tdt_handle_id(task));
	tdt_task_woken(inner);
	ck_assert_uint_eq(info_of(inner).woken_by, tdt_handle_id(task));
	tdt_task_leave(task);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_int_eq(info_of(task).state, TDT_TASK_WAITING);
	ck_assert_uint_eq(info_of(task).polls, 2);
	tdt_task_end(child);
	tdt_task_end(inner);
	tdt_task_end(task);
	ck_assert_ptr_null(tdt_misused());
}

TEST(the_parent_may_be_given)
{
	const struct tdt_task_attr *attr = TDT_TASK_ATTR(.flags = TDT_ATTR_PARENT, .parent = 99);
	struct tdt_handle *child = tdt_task_new(attr);

	ck_assert_uint_eq(info_of(child).parent, 99);
	tdt_task_end(child);
	tdt_task_end(task);
}

static NOINLINE void callback(void)
{
	tdt_task_enter(task);
	gate_stay();
	tdt_task_leave(task);
}

static void *call_back(void *nothing)
{
	callback();
	return NULL;
}

TEST(the_stack_of_a_run_stands_behind_the_list_where_it_came_from, .to = 2,
     .skip = stuck_impossible)
{
	pthread_t thread;

	NOT_TRIED_IF(SIGNALS_ARE_LATE && _i == 1, "ThreadSanitizer delays signals");
	gate_hold(&thread, _i == 1, call_back, NULL);
	expect_stack(task, "serve send ", gate_seen(_i == 1, "callback gate_stay"));
	gate_release(thread);
	expect_stack(task, "serve send ", "");
	tdt_task_end(task);
}

TEST(a_task_may_end_while_it_runs)
{
	HANDLE(kept, tdt_handle_ref(task));

	tdt_task_enter(task);
	tdt_task_end(task);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_int_eq(info_of(kept).state, TDT_TASK_READY);
	tdt_task_leave(kept);
	tdt_task_enter(kept);
	tdt_task_enter(NULL);
	tdt_task_leave(NULL);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_ptr_null(tdt_misused());
}

/* An error of a request, say, ends its session. */
TEST(a_task_may_end_while_it_runs_another_one)
{
	FUTURELESS(inner, tdt_task_new(TDT_TASK_ATTR()));

	tdt_task_enter(task);
	tdt_task_enter(inner);
	tdt_task_end(task);
	ck_assert_uint_eq(tdt_current_task_id(), tdt_handle_id(inner));
	tdt_task_leave(inner);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	ck_assert_int_eq(info_of(inner).state, TDT_TASK_WAITING);
	ck_assert_ptr_null(tdt_misused());
}

TEST(a_task_that_has_ended_waits_for_nothing_more)
{
	HANDLE(kept, tdt_handle_ref(task));

	tdt_task_end(task);
	tdt_task_waits_on(kept, TDT_WAIT_TIMER, NULL, 0, NULL);
	ck_assert_int_eq(info_of(kept).state, TDT_TASK_READY);
}

TEST(a_task_with_a_future_is_not_entered)
{
	struct test_task polled = { .leaf.name = 'a' };

	test_task_init(&polled, NULL);
	tdt_task_enter(polled.handle);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	tdt_task_leave(polled.handle);
	test_task_fini(&polled);
	tdt_task_end(task);
}

/* --- Where it waits ----------------------------------------------------------------------- */

TEST(it_waits_at_the_last_list_from_its_leave_on)
{
	struct test_requester requester;

	tdt_task_enter(task);
	tdt_leaf_at(task, NULL);
	tdt_leaf_at(task, &leaf);
	tdt_leaf_at(NULL, &other);
	test_ask(&requester, task);
	ck_assert(!test_answered(&requester));
	tdt_task_leave(task);
	ck_assert_uint_eq(test_answer(&requester)->leaves, 1);
	ck_assert_int_eq(test_nodes_of(requester.trace, "other"), 1);
	test_requester_fini(&requester);
	expect_stack(task, "other ", "");
	tdt_task_end(task);
}

TEST(without_another_list_it_waits_where_it_came_from)
{
	leaf.waits = waits;
	leaf.n_waits = 1;
	tdt_leaf_at(task, &leaf);
	for (int i = 0; i < 3; i++) {
		tdt_task_enter(task);
		ck_assert_uint_eq(info_of(task).n_waits, 0);
		tdt_task_leave(task);
		expect_stack(task, "serve send ", "");
		ck_assert_uint_eq(info_of(task).n_waits, 1);
	}
	tdt_task_enter(task);
	tdt_leaf_at(task, NULL);
	tdt_task_leave(task);
	expect_stack(task, "(unknown) ", "");
	ck_assert_uint_eq(info_of(task).n_waits, 0);
	tdt_task_end(task);
}

/* --- What it waits for -------------------------------------------------------------------- */

static int expect_mutex(struct tdt_handle *handle, const struct tdt_task_info *info, void *nothing)
{
	ck_assert_int_eq(info->waits[0]->kind, TDT_WAIT_MUTEX);
	return 0;
}

static void expect_waits(struct tdt_handle *handle, uint32_t n)
{
	TRACE(trace, tdt_backtrace(handle));

	ck_assert_uint_eq(tdt_trace_info(trace)->n_waits, n);
}

TEST(all_waits_of_a_list_are_shown_and_the_main_one_first)
{
	const struct tdt_task_info *info;

	leaf.waits = waits;
	leaf.n_waits = 3;
	tdt_task_enter(task);
	tdt_leaf_at(task, &leaf);
	tdt_task_leave(task);
	TRACE(trace, tdt_backtrace(task));
	info = tdt_trace_info(trace);
	ck_assert_uint_eq(info->n_waits, 3);
	ck_assert_int_eq(info->waits[0]->kind, TDT_WAIT_MUTEX);
	ck_assert_uint_eq(info->waits[0]->owner, 77);
	ck_assert_str_eq(info->waits[0]->name, "room");
	ck_assert_int_eq(info->waits[2]->kind, TDT_WAIT_IO);
	ck_assert_uint_eq(info->waits[2]->object, 7);
	ck_assert_int_eq(tdt_task_inspect(task, expect_mutex, NULL), 0);
	tdt_task_end(task);
}

TEST(the_waits_are_those_of_the_last_list)
{
	leaf.waits = waits + 1;
	leaf.n_waits = 1;
	other.waits = waits;
	other.n_waits = 1;
	tdt_task_enter(task);
	tdt_leaf_at(task, &leaf);
	tdt_leaf_at(task, &other);
	tdt_task_leave(task);
	ck_assert_uint_eq(info_of(task).n_waits, 1);
	tdt_task_enter(task);
	tdt_leaf_at(task, &leaf);
	leaf.n_waits = 0;
	tdt_leaf_at(task, &leaf);
	tdt_task_leave(task);
	ck_assert_uint_eq(info_of(task).n_waits, 0);
	tdt_task_end(task);
}

TEST(an_operation_may_await_several_things_until_it_awaits_anew)
{
	struct tdt_op op;
	int registered = 0;

	tdt_op_begin(&op, TDT_TASK_ATTR());
	TDT_AWAITS_FOR(&op, registered++, "an answer", TDT_WAIT_IO, 5);
	TDT_AWAITS_TOO(&op, registered++, "a timeout", TDT_WAIT_TIMER, 0);
	ck_assert_int_eq(registered, 2);
	expect_waits(op.task, 2);
	{
		TDT_RUNS(&op);
		for (int i = 0; i <= TDT_OP_WAITS; i++)
			TDT_AWAITS_TOO(&op, registered++, "more", TDT_WAIT_TIMER, 0);
	}
	expect_waits(op.task, TDT_OP_WAITS);
	{
		TDT_RUNS(&op);
		TDT_AWAITS_FOR(&op, registered++, "an answer", TDT_WAIT_IO, 5);
	}
	expect_waits(op.task, 1);
	expect_stack(op.task, "an_operation_may_await_several_things_until_it_awaits_anew "
			      "an answer ", "");
	tdt_op_end(&op);
	TDT_AWAITS_TOO(&op, registered++, "nothing", TDT_WAIT_TIMER, 0);
	tdt_task_end(task);
}

/* --- What it is called -------------------------------------------------------------------- */

static int is_named(struct tdt_handle *handle, const struct tdt_task_info *info, void *nothing)
{
	return info->name != NULL && strcmp(info->name, "callback") == 0;
}

/* Dumps have the name, too. */
static void expect_dumped_name(void)
{
	WRITTEN(text, out, MUST(tdt_dump(out) == 0));

	ck_assert_msg(strstr(text, "\"callback\"") != NULL, "%s", text);
}

TEST(a_task_without_a_name_is_called_by_the_function_that_it_runs, .to = 2)
{
	static char stack[4096];
	const struct tdt_task_attr *attr = TDT_TASK_ATTR(.entry = (uintptr_t)callback);
	struct tdt_fiber *fiber = _i == 1 ? tdt_fiber_new(stack, sizeof stack, attr) : NULL;
	struct tdt_handle *nameless = tdt_handle_ref(_i == 1 ? tdt_fiber_handle(fiber)
							     : tdt_task_new(attr));
	struct tdt_trace *trace;

	MUST(nameless != NULL);
	while (tdt_task_inspect(nameless, is_named, NULL) == 0)
		usleep(1000); /* a name that comes late is there the next time */
	ck_assert_int_eq(tdt_tasks(NULL, is_named, NULL), 1);
	expect_dumped_name();
	if (_i == 0) {
		tdt_leaf_at(nameless, &leaf);
		trace = tdt_backtrace(nameless);
		ck_assert_ptr_nonnull(trace);
		ck_assert_str_eq(tdt_trace_info(trace)->name, "callback");
		tdt_trace_free(trace);
		tdt_task_end(nameless);
	} else {
		tdt_fiber_end(fiber);
	}
	ck_assert_ptr_null(info_of(nameless).name);
	tdt_handle_unref(nameless);
	tdt_task_end(task);
}

/* --- Wrong calls -------------------------------------------------------------------------- */

TEST(a_task_that_is_entered_twice_is_misuse)
{
	tdt_task_enter(task);
	tdt_task_enter(task);
	expect_misuse(TDT_MISUSE_TASK_ENTER);
	tdt_task_leave(task);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	tdt_task_leave(task);
	expect_stack(task, "serve send ", "");
	tdt_task_end(task);
}

TEST(a_task_that_is_left_twice_is_misuse)
{
	tdt_task_enter(task);
	tdt_task_leave(task);
	tdt_task_leave(task);
	expect_misuse(TDT_MISUSE_TASK_LEAVE);
	expect_stack(task, "serve send ", "");
	tdt_task_end(task);
}

TEST(tasks_that_are_left_in_another_order_are_misuse)
{
	struct tdt_handle *inner = tdt_task_new(TDT_TASK_ATTR());

	tdt_task_enter(task);
	tdt_task_enter(inner);
	tdt_task_leave(task);
	expect_misuse(TDT_MISUSE_TASK_LEAVE);
	ck_assert_int_eq(info_of(task).state, TDT_TASK_WAITING);
	ck_assert_uint_eq(tdt_current_task_id(), tdt_handle_id(inner));
	tdt_task_leave(inner);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	tdt_task_end(inner);
	tdt_task_end(task);
}

static void *leave_or_end(void *ends)
{
	if (ends != NULL)
		tdt_task_end(task);
	else
		tdt_task_leave(task);
	return NULL;
}

TEST(a_task_that_is_left_or_ended_on_another_thread_is_misuse, .to = 2)
{
	struct tdt_handle *next = tdt_task_new(TDT_TASK_ATTR());

	tdt_task_enter(task);
	run_on_thread(leave_or_end, _i != 0 ? &leaf : NULL);
	expect_misuse(_i != 0 ? TDT_MISUSE_FIBER_END : TDT_MISUSE_TASK_LEAVE);
	tdt_task_enter(next); /* what the other thread has left here is taken out */
	tdt_task_leave(next);
	tdt_task_end(next);
	if (_i == 0) {
		tdt_task_leave(task);
		tdt_task_end(task);
	}
	ck_assert_uint_eq(tdt_current_task_id(), 0);
}
