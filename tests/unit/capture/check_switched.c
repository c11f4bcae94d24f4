// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers capture/chain.  A host switches away from its coroutines in the middle of polls of traced
 * futures, which tdt/integrate/stack.h forbids.  The polls of a thread then end in another order
 * than they began.  Nothing of a poll that has ended is used, and nothing of one task is reported
 * of another.
 */

#include "lib/requester.h"
#include "lib/switched.h"
#include "lib/test.h"

#define MOST 3

static struct switched cors[MOST];

static uint64_t id_of(const struct switched *co)
{
	return tdt_handle_id(co->traced.handle);
}

static void start(unsigned n, void (*act)(struct switched *co, struct tdt_context *cx))
{
	char *stacks = switched_stacks(n);

	for (unsigned i = 0; i < n; i++) {
		cors[i] = (struct switched){ .act = act, .result = TDT_READY };
		switched_init(&cors[i], stacks + i * SWITCHED_STACK);
	}
}

/*
 * The task of the poll that began last, of those that have not ended: in the order in which they
 * were started.
 */
static uint64_t last_begun(unsigned n)
{
	while (n-- > 0)
		if (!cors[n].ended)
			return id_of(&cors[n]);
	return 0;
}

/* Resume it to its end; then take its stack away. */
static void end(unsigned i, unsigned n)
{
	while (!cors[i].ended)
		switched_resume(&cors[i]);
	ck_assert_int_eq(munmap(cors[i].stack, SWITCHED_STACK), 0);
	ck_assert_uint_eq(tdt_current_task_id(), last_begun(n));
}

static void goes_away(struct switched *co, struct tdt_context *cx)
{
	switched_away(co);
	USE(cx);
}

/* That the thread is in no poll, and that the next one is as ever. */
static void expect_none(unsigned n)
{
	struct switched next = { .act = goes_away, .result = TDT_READY };

	ck_assert_uint_eq(tdt_current_task_id(), 0);
	switched_init(&next, switched_stacks(1));
	switched_resume(&next);
	ck_assert_uint_eq(tdt_current_task_id(), id_of(&next));
	switched_resume(&next);
	ck_assert(next.ended);
	ck_assert_uint_eq(tdt_current_task_id(), 0);
	switched_fini(&next);
	for (unsigned i = 0; i < n; i++)
		switched_fini(&cors[i]);
}

/* --- The order in which they end ------------------------------------------------------ */

static void goes_away_once(struct switched *co, struct tdt_context *cx)
{
	ck_assert_uint_eq(tdt_current_task_id(), id_of(co));
	switched_away(co);
	USE(cx);
}

static void begin_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		switched_resume(&cors[i]);
	ck_assert_uint_eq(tdt_current_task_id(), id_of(&cors[n - 1]));
}

CASE(switched)

TEST(two_polls_may_end_in_either_order, .to = 2)
{
	start(2, goes_away_once);
	begin_all(2);
	end(_i, 2);
	end(!_i, 2);
	expect_none(2);
}

TEST(three_polls_may_end_in_any_order, .to = 6)
{
	static const unsigned orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					      { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };

	start(3, goes_away_once);
	begin_all(3);
	for (unsigned i = 0; i < 3; i++)
		end(orders[_i][i], 3);
	expect_none(3);
}

/*
 * Polls one in the other: the inner one of each coroutine goes away too, and ends before the outer
 * one does.
 */
struct inner {
	struct switched *co;
	struct tdt_traced traced;
};

static uint64_t inner_id; /* of the last that began */

static tdt_poll_t inner_poll(void *state, struct tdt_context *cx)
{
	struct inner *inner = state;

	inner_id = tdt_handle_id(inner->traced.handle);
	ck_assert_uint_eq(tdt_current_task_id(), inner_id);
	switched_away(inner->co);
	USE(cx);
	return TDT_READY;
}

static void polls_inner(struct switched *co, struct tdt_context *cx)
{
	struct inner inner = { .co = co };

	inner.traced = tdt_traced(((struct tdt_future){ &inner, inner_poll, drop_nothing }));
	ck_assert_int_eq(tdt_future_poll(&inner.traced.future, cx), TDT_READY);
	end_traced(&inner.traced);
	switched_away(co);
}

TEST(polls_in_polls_may_end_in_either_order, .to = 2)
{
	start(2, polls_inner);
	switched_resume(&cors[0]);
	switched_resume(&cors[1]);
	switched_resume(&cors[_i]); /* whose inner poll has ended then */
	switched_resume(&cors[!_i]);
	ck_assert_uint_eq(tdt_current_task_id(), id_of(&cors[1]));
	end(_i, 2);
	end(!_i, 2);
	expect_none(2);
}

TEST(a_poll_may_end_in_the_middle_of_one_that_began_later)
{
	start(2, goes_away_once);
	switched_resume(&cors[0]);
	cors[1].act = polls_inner;
	switched_resume(&cors[1]);
	switched_resume(&cors[0]);
	ck_assert(cors[0].ended);
	ck_assert_uint_eq(tdt_current_task_id(), inner_id);
	switched_resume(&cors[1]);
	ck_assert_uint_eq(tdt_current_task_id(), id_of(&cors[1]));
	end(1, 2);
	expect_none(2);
}

/* --- What is captured ------------------------------------------------------------------- */

static NOINLINE void clone_here(struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	USE(cx);
}

/* The two are not the same to a compiler. */
static NOINLINE void first_leaves(struct switched *co, struct tdt_context *cx)
{
	clone_here(cx);
	switched_away(co);
	clone_here(cx);
	USE(cx);
}

static NOINLINE void second_leaves(struct switched *co, struct tdt_context *cx)
{
	clone_here(cx);
	switched_away(co);
	clone_here(cx);
	USE(co);
}

static void expect_leaves(struct test_requester *requester, const char *own, const char *other)
{
	const struct tdt_task_info *info = test_answer(requester);

	ck_assert_uint_eq(info->leaves, 2);
	ck_assert_uint_eq(info->leaves_lost, 0);
	ck_assert_int_eq(test_nodes_of(requester->trace, own), 2);
	ck_assert_int_eq(test_nodes_of(requester->trace, other), 0);
	for (unsigned i = 0; i < tdt_trace_stacks(requester->trace); i++) {
		enum tdt_cut cut;

		tdt_trace_stack(requester->trace, i, NULL, 0, &cut);
		ck_assert_int_eq(cut, TDT_CUT_NOT);
	}
	test_requester_fini(requester);
}

/* Whichever stack lies above the other, and whichever poll ends first. */
TEST(no_leaf_is_recorded_for_a_poll_switched_away_from, .to = 4)
{
	struct test_requester requester[2];
	struct switched *first = &cors[_i % 2], *second = &cors[!(_i % 2)];

	start(2, NULL);
	first->act = first_leaves;
	second->act = second_leaves;
	first->result = second->result = TDT_PENDING;
	test_ask(&requester[0], first->traced.handle);
	test_ask(&requester[1], second->traced.handle);
	switched_resume(first);
	switched_resume(second);
	switched_resume(_i / 2 ? first : second);
	switched_resume(_i / 2 ? second : first);
	expect_leaves(&requester[0], "first_leaves", "second_leaves");
	expect_leaves(&requester[1], "second_leaves", "first_leaves");
	expect_none(2);
}
