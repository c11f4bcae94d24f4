// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers future/combine.  Join and select: which child is polled when, which is
 * dropped when, and what comes out.
 */

#include "lib/futures.h"
#include "lib/test.h"

static struct test_waker waker;
static struct tdt_context cx = { &waker.waker };
static struct test_future a, b, c;
static struct tdt_future all[3];
static size_t winner;

/* Three futures that are ready at their first poll. */
static void setup(void)
{
	test_waker_init(&waker);
	test_events_clear();
	a = (struct test_future){ .name = 'a' };
	b = (struct test_future){ .name = 'b' };
	c = (struct test_future){ .name = 'c' };
	all[0] = test_future(&a);
	all[1] = test_future(&b);
	all[2] = test_future(&c);
	winner = 99;
}

/* Poll once more, and compare what came out and what was done. */
static void expect(const struct tdt_future *future, tdt_poll_t result, const char *events)
{
	test_events_clear();
	ck_assert_uint_eq(tdt_future_poll(future, &cx), result);
	ck_assert_str_eq(test_events, events);
}

/* Drop, and compare what was done; no waker is left. */
static void expect_drop(struct tdt_future *future, const char *events)
{
	test_events_clear();
	tdt_future_drop(future);
	ck_assert_str_eq(test_events, events);
	ck_assert_int_eq(waker.alive, 0);
}

/* Drop a future that keeps what it was made of. */
static void expect_kept(struct tdt_future *future)
{
	test_events_clear();
	tdt_future_drop(future);
	ck_assert_str_eq(test_events, "");
}

CASE(join, .setup = setup)

TEST(join_polls_in_order_and_drops_who_has_ended_at_once)
{
	struct tdt_future join;

	a.pending = 1;
	c.pending = 2;
	join = tdt_join_all(all, 3);
	expect(&join, TDT_PENDING, "a. b! b~ c. ");
	expect(&join, TDT_PENDING, "a! a~ c. ");
	expect(&join, TDT_READY, "c! c~ ");
	expect(&join, TDT_PANICKED, "");
	expect_drop(&join, "");
}

TEST(every_pending_child_clones_the_waker_it_is_given)
{
	struct tdt_future join;

	a.pending = b.pending = c.pending = 1;
	join = tdt_join_all(all, 3);
	expect(&join, TDT_PENDING, "a. b. c. ");
	ck_assert_int_eq(waker.clones, 3);
	test_future_wake(&b);
	ck_assert_int_eq(waker.wakes, 1);
	expect_drop(&join, "a~ b~ c~ ");
}

TEST(join_of_none_is_ready_at_its_first_poll)
{
	struct tdt_future join = tdt_join_all(NULL, 0);

	expect(&join, TDT_READY, "");
	expect(&join, TDT_PANICKED, "");
	expect_drop(&join, "");
	join = tdt_join_all(all, 0);
	expect(&join, TDT_READY, "");
	expect_drop(&join, "");
}

TEST(join_copies_the_array)
{
	struct tdt_future join = tdt_join_all(all, 3);

	all[0] = all[1] = all[2] = TDT_FUTURE_NONE;
	expect(&join, TDT_READY, "a! a~ b! b~ c! c~ ");
	expect_drop(&join, "");
}

TEST(a_panic_drops_the_rest_of_a_join_unpolled)
{
	struct tdt_future join;

	a.pending = 5;
	b.result = TDT_PANICKED;
	join = tdt_join_all(all, 3);
	expect(&join, TDT_PANICKED, "a. b# b~ a~ c~ ");
	ck_assert_int_eq(c.polls, 0);
	ck_assert_int_eq(waker.alive, 0);
	expect(&join, TDT_PANICKED, "");
	expect_drop(&join, "");
}

TEST(dropping_a_pending_join_drops_who_has_not_ended)
{
	struct tdt_future join;

	a.pending = c.pending = 5;
	join = tdt_join_all(all, 3);
	expect(&join, TDT_PENDING, "a. b! b~ c. ");
	expect_drop(&join, "a~ c~ ");
}

TEST(dropping_an_unpolled_join_drops_all)
{
	struct tdt_future join = tdt_join_all(all, 3);

	expect_drop(&join, "a~ b~ c~ ");
}

CASE(select, .setup = setup)

TEST(select_is_ready_with_the_first_and_drops_the_losers)
{
	struct tdt_future select;

	a.pending = 5;
	b.pending = 1;
	c.pending = 5;
	select = tdt_select(all, 3, &winner);
	expect(&select, TDT_PENDING, "a. b. c. ");
	ck_assert_uint_eq(winner, 99);
	expect(&select, TDT_READY, "a. b! a~ b~ c~ ");
	ck_assert_uint_eq(winner, 1);
	ck_assert_int_eq(waker.alive, 0);
	expect(&select, TDT_PANICKED, "");
	expect_drop(&select, "");
}

TEST(the_first_in_the_array_wins_a_tie)
{
	struct tdt_future select = tdt_select(all, 3, &winner);

	expect(&select, TDT_READY, "a! a~ b~ c~ ");
	ck_assert_uint_eq(winner, 0);
	expect_drop(&select, "");
}

TEST(select_without_a_winner_to_write)
{
	struct tdt_future select;

	a.pending = 5;
	select = tdt_select(all, 2, NULL);
	expect(&select, TDT_READY, "a. b! a~ b~ ");
	expect_drop(&select, "");
	tdt_future_drop(&all[2]);
}

TEST(a_panic_ends_a_select_with_no_winner)
{
	struct tdt_future select;

	a.pending = 5;
	b.result = TDT_PANICKED;
	select = tdt_select(all, 3, &winner);
	expect(&select, TDT_PANICKED, "a. b# a~ b~ c~ ");
	ck_assert_uint_eq(winner, 99);
	ck_assert_int_eq(c.polls, 0);
	expect(&select, TDT_PANICKED, "");
	expect_drop(&select, "");
}

TEST(dropping_a_pending_select_drops_all)
{
	struct tdt_future select;

	a.pending = b.pending = c.pending = 5;
	select = tdt_select(all, 3, &winner);
	expect(&select, TDT_PENDING, "a. b. c. ");
	expect_drop(&select, "a~ b~ c~ ");
	ck_assert_uint_eq(winner, 99);
}

CASE(both, .setup = setup)

TEST(combinators_nest)
{
	struct tdt_future two[2], join;

	a.pending = 1;
	b.pending = 5;
	two[0] = tdt_select(all, 2, &winner);
	two[1] = test_future(&c);
	join = tdt_join_all(two, 2);
	expect(&join, TDT_PENDING, "a. b. c! c~ ");
	expect(&join, TDT_READY, "a! a~ b~ ");
	ck_assert_uint_eq(winner, 0);
	expect_drop(&join, "");
}

/* What is passed in stays the caller's. */
static void expect_refused(struct tdt_future future, int error)
{
	ck_assert(tdt_future_is_none(&future));
	ck_assert_int_eq(errno, error);
	ck_assert_str_eq(test_events, "");
}

TEST(bad_arguments_are_refused_and_the_futures_left_alone)
{
	expect_refused(tdt_join_all(NULL, 1), EINVAL);
	expect_refused(tdt_select(NULL, 1, &winner), EINVAL);
	expect_refused(tdt_select(all, 0, &winner), EINVAL);
	expect_refused(tdt_select(NULL, 0, NULL), EINVAL);
	all[2] = TDT_FUTURE_NONE;
	expect_refused(tdt_join_all(all, 3), EINVAL);
	expect_refused(tdt_select(all, 3, &winner), EINVAL);
	expect_refused(tdt_join_all(all, SIZE_MAX), ENOMEM);
	expect_refused(tdt_join_all(all, SIZE_MAX / sizeof(all[0])), ENOMEM);
	expect_refused(tdt_select(all, SIZE_MAX, &winner), ENOMEM);
}

CASE(keep, .setup = setup)

TEST(who_loses_goes_on_in_the_next_one)
{
	struct tdt_future select;

	a.pending = 1;
	b.pending = 3;
	select = tdt_select_keep(all, 2, &winner);
	expect(&select, TDT_PENDING, "a. b. ");
	expect(&select, TDT_READY, "a! a~ ");
	ck_assert_uint_eq(winner, 0);
	ck_assert(tdt_future_is_none(&all[0]));
	expect(&select, TDT_PANICKED, "");
	expect_kept(&select);
	all[0] = test_future(&c);
	c.pending = 9;
	select = tdt_select_keep(all, 2, &winner);
	expect(&select, TDT_PENDING, "c. b. ");
	expect(&select, TDT_PENDING, "c. b. ");
	expect(&select, TDT_READY, "c. b! b~ ");
	ck_assert_uint_eq(winner, 1);
	expect_kept(&select);
	expect_drop(&all[0], "c~ ");
	tdt_future_drop(&all[1]);
}

TEST(none_is_left_out_and_only_none_panics)
{
	struct tdt_future select;

	all[1] = TDT_FUTURE_NONE;
	a.result = TDT_PANICKED;
	select = tdt_select_keep(all, 2, NULL);
	expect(&select, TDT_PANICKED, "a# a~ ");
	expect_kept(&select);
	select = tdt_select_keep(all, 2, NULL);
	expect(&select, TDT_PANICKED, "");
	expect_kept(&select);
}

TEST(it_may_be_dropped_and_made_again)
{
	struct tdt_future select;

	a.pending = 2;
	select = tdt_select_keep(all, 1, &winner);
	expect(&select, TDT_PENDING, "a. ");
	expect_kept(&select);
	ck_assert_uint_eq(winner, 99);
	select = tdt_select_keep(all, 1, &winner);
	expect(&select, TDT_PENDING, "a. ");
	expect(&select, TDT_READY, "a! a~ ");
	expect_kept(&select);
	ck_assert_uint_eq(winner, 0);
}

static int make_keep(void *argument)
{
	struct tdt_future select = tdt_select_keep(all, 3, argument);
	int result = tdt_future_is_none(&select) ? -errno : 0;

	tdt_future_drop(&select);
	return result;
}

TEST(a_lack_of_memory_is_told)
{
	no_memory_each(make_keep, NULL, 1);
}
