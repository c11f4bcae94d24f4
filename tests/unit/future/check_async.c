// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tdt/async.h.  Async functions in plain C.  lines.sh checks that the
 * lines in their backtraces are right.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

static bool no_memory;

static void *test_malloc(size_t size)
{
	errno = no_memory ? ENOMEM : errno;
	return no_memory ? NULL : malloc(size);
}

#define malloc test_malloc
#include <tdt/async.h>
#undef malloc

#include "lib/futures.h"
#include "lib/test.h"

static struct test_waker waker;
static struct tdt_context cx = { &waker.waker };
static struct test_future a, b, c;

static void setup(void)
{
	test_waker_init(&waker);
	test_events_clear();
	a = (struct test_future){ .name = 'a' };
	b = (struct test_future){ .name = 'b' };
	c = (struct test_future){ .name = 'c' };
}

/* Poll once more, and compare what came out and what was done. */
static void expect(const struct tdt_future *future, tdt_poll_t result, const char *events)
{
	test_events_clear();
	ck_assert_uint_eq(tdt_future_poll(future, &cx), result);
	ck_assert_str_eq(test_events, events);
}

static int finis;

/* Drop, and compare what was done; no waker is left. */
static void expect_drop(struct tdt_future *future, const char *events)
{
	test_events_clear();
	finis = 0;
	tdt_future_drop(future);
	ck_assert_str_eq(test_events, events);
	ck_assert_int_eq(waker.alive, 0);
}

/* Awaits a, b and c in turn, unless it is to leave after one; counts how far it came. */
struct steps {
	struct tdt_async async;
	int leave_after;
	int *step;
};

static tdt_poll_t steps_poll(void *state, struct tdt_context *context)
{
	struct steps *steps = state;

	TDT_BEGIN(&steps->async, context);
	TDT_AWAIT(test_future(&a));
	*steps->step = 1;
	if (steps->leave_after == 1)
		return TDT_READY;
	TDT_AWAIT(test_future(&b));
	*steps->step = 2;
	TDT_AWAIT(test_future(&c));
	*steps->step = 3;
	TDT_END();
}

/* The child it awaits is dropped before it. */
static void steps_fini(void *state)
{
	struct steps *steps = state;

	ck_assert(tdt_future_is_none(&steps->async.child));
	finis++;
}

static struct tdt_future steps(int leave_after, int *step)
{
	return TDT_ASYNC_NEW(
	    steps_poll,
	    (struct steps){ .async.fini = steps_fini, .leave_after = leave_after, .step = step });
}

CASE(flow, .setup = setup)

TEST(awaits_follow_each_other_top_to_bottom)
{
	int step = 0;
	struct tdt_future future = steps(0, &step);

	expect(&future, TDT_READY, "a! a~ b! b~ c! c~ ");
	ck_assert_int_eq(step, 3);
	expect_drop(&future, "");
	ck_assert_int_eq(finis, 1);
}

TEST(a_pending_await_is_gone_on_with_in_place)
{
	int step = 0;
	struct tdt_future future = steps(0, &step);

	a.pending = 1;
	b.pending = 2;
	c.pending = 1;
	expect(&future, TDT_PENDING, "a. ");
	ck_assert_int_eq(step, 0);
	expect(&future, TDT_PENDING, "a! a~ b. ");
	ck_assert_int_eq(step, 1);
	expect(&future, TDT_PENDING, "b. ");
	expect(&future, TDT_PENDING, "b! b~ c. ");
	ck_assert_int_eq(step, 2);
	expect(&future, TDT_READY, "c! c~ ");
	ck_assert_int_eq(step, 3);
	expect_drop(&future, "");
}

TEST(nothing_runs_before_the_first_poll)
{
	int step = 0;
	struct tdt_future future = steps(0, &step);

	expect_drop(&future, "");
	ck_assert_int_eq(step, 0);
	ck_assert_int_eq(finis, 1);
}

/* As a library has it: this program is linked with none. */
tdt__await_fn *volatile tdt__await_ready;

static unsigned ready_awaits;

static void count_ready(const struct tdt_async *async)
{
	ck_assert_ptr_nonnull(async);
	ready_awaits++;
}

TEST(each_await_that_became_ready_is_marked)
{
	int step = 0;
	FUTURE(future, steps(0, &step));

	tdt__await_ready = count_ready;
	b.pending = 2;
	for (unsigned polls = 0; polls < 2; polls++) {
		ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_PENDING);
		ck_assert_uint_eq(ready_awaits, 1);
	}
	ck_assert_uint_eq(tdt_future_poll(&future, &cx), TDT_READY);
	ck_assert_uint_eq(ready_awaits, 3);
	tdt__await_ready = NULL;
}

CASE(ends, .setup = setup)

TEST(a_return_in_the_middle_ends_it)
{
	int step = 0;
	struct tdt_future future = steps(1, &step);

	a.pending = 1;
	expect(&future, TDT_PENDING, "a. ");
	expect(&future, TDT_READY, "a! a~ ");
	ck_assert_int_eq(step, 1);
	expect(&future, TDT_PANICKED, "");
	expect_drop(&future, "");
	ck_assert_int_eq(finis, 1);
}

TEST(a_poll_after_the_end_panics_and_runs_nothing)
{
	int step = 0;
	struct tdt_future future = steps(0, &step);

	expect(&future, TDT_READY, "a! a~ b! b~ c! c~ ");
	step = 0;
	expect(&future, TDT_PANICKED, "");
	expect(&future, TDT_PANICKED, "");
	ck_assert_int_eq(step, 0);
	expect_drop(&future, "");
}

CASE(flow)

TEST(spurious_polls_only_poll_the_awaited_child)
{
	int step = 0;
	struct tdt_future future = steps(0, &step);

	b.pending = 4;
	expect(&future, TDT_PENDING, "a! a~ b. ");
	expect(&future, TDT_PENDING, "b. ");
	expect(&future, TDT_PENDING, "b. ");
	ck_assert_int_eq(waker.clones, 1);
	ck_assert_int_eq(step, 1);
	expect_drop(&future, "b~ ");
}

CASE(ends)

/* Cancelled at await number _i, it drops that child, once, and polls no other. */
TEST(cancelling_drops_the_awaited_child_once, .to = 3)
{
	static const char *const polled[] = { "a. ", "a! a~ b. ", "a! a~ b! b~ c. " };
	static const char *const dropped[] = { "a~ ", "b~ ", "c~ " };
	struct test_future *const children[] = { &a, &b, &c };
	int step = 0;
	struct tdt_future future = steps(0, &step);

	children[_i]->pending = 9;
	expect(&future, TDT_PENDING, polled[_i]);
	expect_drop(&future, dropped[_i]);
	ck_assert_int_eq(step, _i);
	ck_assert_int_eq(finis, 1);
}

TEST(a_panic_of_a_child_is_passed_on_at_once, .to = 3)
{
	static const char *const events[] = { "a# a~ ", "a! a~ b# b~ ", "a! a~ b! b~ c# c~ " };
	struct test_future *const children[] = { &a, &b, &c };
	int step = 0;
	struct tdt_future future = steps(0, &step);

	children[_i]->result = TDT_PANICKED;
	expect(&future, TDT_PANICKED, events[_i]);
	ck_assert_int_eq(step, _i);
	expect(&future, TDT_PANICKED, "");
	expect_drop(&future, "");
	ck_assert_int_eq(finis, 1);
}

/* Loops: `child` is made anew in each turn; its C local is lost, its member not. */
struct loop {
	struct tdt_async async;
	int turn;
	int made;
	int *turns;
};

static struct tdt_future again(struct loop *loop)
{
	loop->made++;
	a = (struct test_future){ .name = 'a', .pending = 1 };
	return test_future(&a);
}

static tdt_poll_t loop_poll(void *state, struct tdt_context *context)
{
	struct loop *loop = state;

	TDT_BEGIN(&loop->async, context);
	for (loop->turn = 0; loop->turn < 3; loop->turn++) {
		TDT_AWAIT(again(loop));
		if (loop->turn == 0)
			continue;
		switch (loop->turn) { /* with no await in it, a switch is fine */
		case 1:
			*loop->turns += 10;
			break;
		default:
			*loop->turns += 100;
		}
	}
	ck_assert_int_eq(loop->made, 3);
	TDT_END();
}

CASE(flow)

TEST(awaits_in_a_loop_evaluate_their_future_once_a_turn)
{
	int turns = 0;
	struct tdt_future future = TDT_ASYNC_NEW(loop_poll, (struct loop){ .turns = &turns });

	expect(&future, TDT_PENDING, "a. ");
	expect(&future, TDT_PENDING, "a! a~ a. ");
	expect(&future, TDT_PENDING, "a! a~ a. ");
	expect(&future, TDT_READY, "a! a~ ");
	ck_assert_int_eq(turns, 110);
	expect_drop(&future, "");
}

/* All three awaits are on one line. */
static tdt_poll_t line_poll(void *state, struct tdt_context *context)
{
	struct steps *steps = state;

	TDT_BEGIN(&steps->async, context);
	TDT_AWAIT(test_future(&a)); TDT_AWAIT(test_future(&b)); TDT_AWAIT(test_future(&c));
	*steps->step = 3;
	TDT_END();
}

TEST(awaits_on_one_line_follow_each_other)
{
	int step = 0;
	struct tdt_future future = TDT_ASYNC_NEW(line_poll, (struct steps){ .step = &step });
	struct steps *state = future.state;
	uint32_t first;

	ck_assert_ptr_nonnull(state);
	a.pending = b.pending = c.pending = 1;
	expect(&future, TDT_PENDING, "a. ");
	first = state->async.line;
	expect(&future, TDT_PENDING, "a! a~ b. ");
	ck_assert_uint_eq(state->async.line, first);
	expect(&future, TDT_PENDING, "b! b~ c. ");
	expect(&future, TDT_READY, "c! c~ ");
	ck_assert_int_eq(step, 3);
	expect_drop(&future, "");
}

/* Results and errors travel through pointers. */
struct fetch {
	struct tdt_async async;
	int error; /* of creating the child */
	int *error_out;
};

static struct tdt_future failing(int error)
{
	errno = error;
	return error != 0 ? TDT_FUTURE_NONE : test_future(&a);
}

static tdt_poll_t careless_poll(void *state, struct tdt_context *context)
{
	struct fetch *fetch = state;

	TDT_BEGIN(&fetch->async, context);
	TDT_AWAIT(failing(fetch->error));
	*fetch->error_out = 0;
	TDT_END();
}

static tdt_poll_t careful_poll(void *state, struct tdt_context *context)
{
	struct fetch *fetch = state;
	struct tdt_future child;

	TDT_BEGIN(&fetch->async, context);
	child = failing(fetch->error);
	if (tdt_future_is_none(&child)) {
		*fetch->error_out = errno;
		return TDT_READY;
	}
	TDT_AWAIT(child);
	*fetch->error_out = 0;
	TDT_END();
}

CASE(ends)

TEST(awaiting_none_panics)
{
	int error = -1;
	struct tdt_future future =
	    TDT_ASYNC_NEW(careless_poll, (struct fetch){ .error = EMFILE, .error_out = &error });

	expect(&future, TDT_PANICKED, "");
	expect(&future, TDT_PANICKED, "");
	ck_assert_int_eq(error, -1);
	expect_drop(&future, "");
}

TEST(a_child_tested_for_none_gives_an_error_instead)
{
	int error = -1;
	struct tdt_future future =
	    TDT_ASYNC_NEW(careful_poll, (struct fetch){ .error = EMFILE, .error_out = &error });

	expect(&future, TDT_READY, "");
	ck_assert_int_eq(error, EMFILE);
	expect_drop(&future, "");

	a.pending = 1;
	future = TDT_ASYNC_NEW(careful_poll, (struct fetch){ .error_out = &error });
	expect(&future, TDT_PENDING, "a. ");
	expect(&future, TDT_READY, "a! a~ ");
	ck_assert_int_eq(error, 0);
	expect_drop(&future, "");
}

/* One async function awaits another. */
struct outer {
	struct tdt_async async;
	int step;
	int *result;
};

static tdt_poll_t outer_poll(void *state, struct tdt_context *context)
{
	struct outer *outer = state;

	TDT_BEGIN(&outer->async, context);
	TDT_AWAIT(steps(0, &outer->step));
	*outer->result = outer->step;
	TDT_END();
}

CASE(flow)

TEST(async_functions_await_each_other)
{
	int result = -1;
	struct tdt_future future = TDT_ASYNC_NEW(outer_poll, (struct outer){ .result = &result });

	c.pending = 1;
	expect(&future, TDT_PENDING, "a! a~ b! b~ c. ");
	expect(&future, TDT_READY, "c! c~ ");
	ck_assert_int_eq(result, 3);
	expect_drop(&future, "");
}

CASE(ends)

TEST(cancelling_goes_down_to_the_leaf)
{
	int result = -1;
	struct tdt_future future = TDT_ASYNC_NEW(outer_poll, (struct outer){ .result = &result });

	b.pending = 9;
	expect(&future, TDT_PENDING, "a! a~ b. ");
	expect_drop(&future, "b~ ");
	ck_assert_int_eq(finis, 1);
	ck_assert_int_eq(result, -1);
}

CASE(making, .setup = setup)

TEST(the_state_is_copied_from_a_variable_too)
{
	int step = 0;
	struct steps variable = { .step = &step };
	struct tdt_future future = TDT_ASYNC_NEW(steps_poll, variable);

	ck_assert_ptr_ne(future.state, &variable);
	variable.step = NULL;
	expect(&future, TDT_READY, "a! a~ b! b~ c! c~ ");
	ck_assert_int_eq(step, 3);
	expect_drop(&future, "");
}

TEST(no_memory_gives_none)
{
	int step = 0;
	struct tdt_future future;

	finis = 0;
	no_memory = true;
	future = steps(0, &step);
	no_memory = false;
	ck_assert(tdt_future_is_none(&future));
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_int_eq(finis, 0);
}

CASE(flow)

TEST(a_debugger_finds_the_line_in_the_state)
{
	int step = 0;
	struct tdt_future future = steps(0, &step);
	struct steps *state = future.state;
	uint32_t first;

	a.pending = b.pending = 1;
	ck_assert_uint_eq(state->async.line, 0);
	expect(&future, TDT_PENDING, "a. ");
	first = state->async.line;
	expect(&future, TDT_PENDING, "a! a~ b. ");
	ck_assert_uint_eq(state->async.line, first + 4);
	expect_drop(&future, "b~ ");
}
