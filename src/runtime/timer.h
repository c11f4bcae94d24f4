/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A timer.  It is the state of the leaf that waits for it; the leaf lends it to the driver while
 * the timer runs.
 *
 * All running timers are in one tree, under the driver's lock.  libuv has one timer only, for the
 * one that is due first.  So starting a timer that is due later than others, and cancelling any
 * timer, takes the lock but no system call.  This is the common case: most timeouts around a read
 * do not elapse.  And a cancelled timer is gone at once.
 */

#include "runtime/loop.h"
#include "runtime/slot.h"

struct tdt__timer {
	struct tdt__slot slot; /* the leaf's */
	atomic_bool fired;     /* written under the lock, before the slot is woken */
	bool ended;	       /* only the leaf uses it */
	uint64_t ms;	       /* the duration; constant */

	/* Constant from the start. */
	struct tdt__driver *driver; /* a reference; NULL before the start */
	uint64_t due_ms;	    /* in ms of the loop's clock */
	uint64_t number;	    /* numbers the driver's timers in the order of their starts */

	RB_ENTRY(tdt__timer) node; /* in the driver's tree, under its lock, until the timer fires */
};

/* NULL if there is no memory. */
struct tdt__timer *tdt__timer_new(uint64_t ms);

/*
 * Have the timer fire `ms` milliseconds from now, never earlier.  If the clock cannot count that
 * far, the timer never fires.  Returns 0, or -ENOTSUP: the driver is stopped, or NULL.
 */
int tdt__timer_start(struct tdt__timer *timer, struct tdt__driver *driver);

static inline bool tdt__timer_fired(struct tdt__timer *timer)
{
	/* Relaxed: the exchanges of tdt__slot_register() and tdt__slot_take() order this. */
	return atomic_load_explicit(&timer->fired, memory_order_relaxed);
}

/* Cancel the timer if it runs, and free it. */
void tdt__timer_free(struct tdt__timer *timer);

/* The time when the first timer is due; UINT64_MAX if no timer runs.  The driver is locked. */
uint64_t tdt__timers_due(struct tdt__driver *driver);

/* Fire the timers that are due.  Call this on the driver's thread. */
void tdt__timers_fire(struct tdt__driver *driver);

/* Wake the leaves that still wait, so that they find out that the driver is stopped. */
void tdt__timers_give_up(struct tdt__driver *driver);
