// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Timers.  libuv's clock counts whole milliseconds of CLOCK_MONOTONIC, rounded down.  The time at
 * which a timer is due is rounded up on this clock.  So a timer never fires early, no matter when
 * libuv last read the clock.
 */

#include <config.h>

#include "runtime/timer.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define NS_A_MS 1000000u
#define NS_A_S 1000000000u

static int compare_timers(const struct tdt__timer *a, const struct tdt__timer *b)
{
	if (a->due_ms != b->due_ms)
		return a->due_ms < b->due_ms ? -1 : 1;
	return a->number < b->number ? -1 : a->number > b->number;
}

RB_GENERATE_STATIC(tdt__timers, tdt__timer, node, compare_timers)

struct tdt__timer *tdt__timer_new(uint64_t ms)
{
	struct tdt__timer *timer = calloc(1, sizeof(*timer));

	if (timer != NULL)
		timer->ms = ms;
	return timer;
}

/* The first time, on a clock that counts whole ms, when at least `ms` will have passed from now. */
static uint64_t due_in(uint64_t ms)
{
	struct timespec now;
	uint64_t now_ns, due_ns;

	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = (uint64_t)now.tv_sec * NS_A_S + (uint64_t)now.tv_nsec;
	if (__builtin_mul_overflow(ms, NS_A_MS, &due_ns) ||
	    __builtin_add_overflow(due_ns, now_ns, &due_ns))
		return UINT64_MAX;
	return due_ns / NS_A_MS + (due_ns % NS_A_MS != 0);
}

int tdt__timer_start(struct tdt__timer *timer, struct tdt__driver *driver)
{
	int error = 0;

	if (driver == NULL)
		return -ENOTSUP;
	timer->due_ms = due_in(timer->ms);
	pthread_mutex_lock(&driver->lock);
	if (tdt__driver_stopped(driver)) {
		error = -ENOTSUP;
	} else {
		timer->driver = tdt__driver_ref(driver);
		timer->number = driver->timers_started++;
		RB_INSERT(tdt__timers, &driver->timers, timer);
		tdt__driver_wake(driver, timer->due_ms);
	}
	pthread_mutex_unlock(&driver->lock);
	return error;
}

/* The driver is not woken now: waking it costs as much as its wake-up when the timer was due. */
static void cancel(struct tdt__timer *timer)
{
	struct tdt__driver *driver = timer->driver;

	pthread_mutex_lock(&driver->lock);
	if (!tdt__timer_fired(timer))
		RB_REMOVE(tdt__timers, &driver->timers, timer);
	pthread_mutex_unlock(&driver->lock);
	tdt__driver_unref(driver);
}

void tdt__timer_free(struct tdt__timer *timer)
{
	if (timer->driver != NULL)
		cancel(timer);
	tdt__slot_clear(&timer->slot);
	free(timer);
}

uint64_t tdt__timers_due(struct tdt__driver *driver)
{
	const struct tdt__timer *first = RB_MIN(tdt__timers, &driver->timers);

	return first != NULL ? first->due_ms : UINT64_MAX;
}

/*
 * Fire the first timer that is due by `now_ms`, and take its waker.  False: there is none.  The
 * timer may be freed as soon as this returns.
 */
static bool take_due(struct tdt__driver *driver, uint64_t now_ms, const struct tdt_waker **waker)
{
	struct tdt__timer *first;
	bool due;

	pthread_mutex_lock(&driver->lock);
	first = RB_MIN(tdt__timers, &driver->timers);
	due = first != NULL && first->due_ms <= now_ms;
	if (due) {
		RB_REMOVE(tdt__timers, &driver->timers, first);
		/* Relaxed: see tdt__timer_fired(). */
		atomic_store_explicit(&first->fired, true, memory_order_relaxed);
		*waker = tdt__slot_take(&first->slot);
	}
	pthread_mutex_unlock(&driver->lock);
	return due;
}

void tdt__timers_fire(struct tdt__driver *driver)
{
	const struct tdt_waker *waker;

	while (take_due(driver, uv_now(&driver->loop), &waker))
		tdt_waker_wake(waker);
}

/*
 * Take the waker of the first timer at or after `*last`, and advance `*last` behind that timer.
 * False: there is none.
 */
static bool take_next(struct tdt__driver *driver, struct tdt__timer *last,
		      const struct tdt_waker **waker)
{
	struct tdt__timer *next;

	pthread_mutex_lock(&driver->lock);
	next = RB_NFIND(tdt__timers, &driver->timers, last);
	if (next != NULL) {
		last->due_ms = next->due_ms;
		last->number = next->number + 1;
		*waker = tdt__slot_take(&next->slot);
	}
	pthread_mutex_unlock(&driver->lock);
	return next != NULL;
}

void tdt__timers_give_up(struct tdt__driver *driver)
{
	struct tdt__timer last = { .due_ms = 0 };
	const struct tdt_waker *waker;

	while (take_next(driver, &last, &waker))
		tdt_waker_wake(waker);
}
