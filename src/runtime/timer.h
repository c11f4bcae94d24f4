/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_TIMER_H
#define TDT_RUNTIME_TIMER_H

/*
 * A timer: the state of the leaf that waits for it, which lends it to the driver while it runs.
 *
 * All running timers are in one tree, under the driver's lock, and libuv has a single one: for what is due first.  So
 * to start a timer that is due later than others, and to cancel any, takes the lock and no system call: a timeout round
 * a read mostly does not elapse.  And a timer that was cancelled is gone at once.
 */

#include "runtime/loop.h"
#include "runtime/slot.h"

struct tdt__timer {
	struct tdt__slot slot; /* who waits */
	atomic_bool fired;     /* written under the lock, and before the slot is woken */
	bool ended;	       /* the leaf's */
	uint64_t ms;	       /* how long; constant */

	/* Constant from the start. */
	struct tdt__driver *driver; /* a reference; NULL before the start */
	uint64_t due_ms;	    /* in ms of the loop's clock */
	uint64_t number;	    /* of the driver's timers, in the order they were started */

	RB_ENTRY(tdt__timer) node; /* in the driver's, until it fires; under the driver's lock */
};

/* NULL if there is no memory. */
struct tdt__timer *tdt__timer_new(uint64_t ms);

/*
 * Have it fire `ms` milliseconds from now, never earlier; not at all if that is beyond what the clock counts.  0, or
 * -ENOTSUP: the driver is stopped, or NULL.
 */
int tdt__timer_start(struct tdt__timer *timer, struct tdt__driver *driver);

static inline bool tdt__timer_fired(struct tdt__timer *timer)
{
	/* Relaxed: the exchanges of tdt__slot_register() and tdt__slot_wake() order it. */
	return atomic_load_explicit(&timer->fired, memory_order_relaxed);
}

/* Cancel it if it runs, and free it. */
void tdt__timer_free(struct tdt__timer *timer);

/* When the first timer is due; UINT64_MAX if none runs.  The driver is locked. */
uint64_t tdt__timers_due(struct tdt__driver *driver);

/* On the driver's thread: fire those that are due. */
void tdt__timers_fire(struct tdt__driver *driver);

/* The driver is stopped: wake who waits, to find that out. */
void tdt__timers_give_up(struct tdt__driver *driver);

#endif
