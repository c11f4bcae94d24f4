/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A timer.  It is the state of tdt_sleep_ms(), the leaf that waits for it; the leaf lends it to the
 * driver while the timer runs.
 *
 * All running timers are in one pairing heap, under the driver's lock.  So starting a timer that is
 * due later than others, and cancelling any timer, takes the lock but no system call and no memory.
 * This is the common case: most timeouts around a read do not elapse.
 */

#include "runtime/driver.h"
#include "runtime/slot.h"

struct tdt__timer {
	struct tdt__slot slot; /* the leaf's */
	atomic_bool fired;     /* written under the lock, before the slot is woken */
	bool ended;	       /* only the leaf uses it */
	uint64_t ms;	       /* the duration; constant */

	/* Constant from the start. */
	struct tdt__driver *driver; /* a reference; NULL before the start */
	uint64_t due_ms;	    /* in whole ms of CLOCK_MONOTONIC */
	uint64_t number;	    /* numbers the driver's timers in the order of their starts */

	/* Under the driver's lock. */
	bool runs;		   /* in the heap */
	struct tdt__timer *child;  /* one of those that are due later */
	struct tdt__timer *next;   /* the next child of the same parent */
	struct tdt__timer *before; /* the child before, or the parent */
};

/* The time when the first timer is due; UINT64_MAX if no timer runs.  The driver is locked. */
uint64_t tdt__timers_due(struct tdt__driver *driver);

/* Fire the timers that are due in this turn.  Call this in the driver's role. */
void tdt__timers_fire(struct tdt__driver *driver, struct tdt__turn *turn);

/* Wake the leaves that still wait, so that they find out that the driver is stopped. */
void tdt__timers_give_up(struct tdt__driver *driver);
