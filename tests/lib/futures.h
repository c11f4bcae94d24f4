/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_FUTURES_H
#define TESTS_FUTURES_H

/*
 * Small futures and wakers for tests: they do what they are told, count what is done to them, and
 * write it down.  They fail the test at hand (Check) when a rule of the ABI is broken: a future
 * dropped twice or during its poll, a poll after the end or after the drop.
 */

#include <stdatomic.h>
#include <stdbool.h>

#include <tdt/future.h>

/*
 * What was done to test futures, in order: a poll of the future named `a` is "a." (pending), "a!"
 * (ready) or "a#" (panicked), its drop "a~"; each with a space behind.  Only the threads that the
 * test orders may write here.
 */
extern char test_events[1024];

void test_events_clear(void);

/* A waker that counts.  Its clone is itself. */
struct test_waker {
	struct tdt_waker waker;
	atomic_int clones; /* made so far */
	atomic_int alive;  /* not yet woken or dropped */
	atomic_int wakes;  /* of either kind */
	bool fail_clone;   /* clones give NULL from now on */
	void (*in_clone)(void); /* what happens just before a clone is made; NULL: nothing */
	void (*in_wake)(void);	/* what happens in each wake-up; NULL: nothing */
};

void test_waker_init(struct test_waker *waker);

/*
 * A future in the test's own memory.  All zero but `name` is one that is ready at its first poll.
 */
struct test_future {
	char name;
	int pending;	   /* how many polls more return TDT_PENDING */
	tdt_poll_t result; /* what the one after that returns */
	bool yield;	   /* when pending it wakes by reference, and clones nothing */
	int polls;
	int drops;
	bool ended;
	bool polled;		       /* right now */
	const struct tdt_waker *waker; /* the clone it keeps while pending */
};

/* The future that is `future`, which must outlive it. */
struct tdt_future test_future(struct test_future *future);

/* Wake the clone that `future` keeps. */
void test_future_wake(struct test_future *future);

#endif
