// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Timers, the heap of those that run, and the leaf that waits for one. */

#include "runtime/timer.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/runtime.h>

#include "base/clock.h"
#include "base/hold.h"
#include "base/leaf_poll.h"
#include "runtime/rt.h"

#define NS_A_MS 1000000u

/* --- The heap, under the driver's lock ------------------------------------------ */

static bool is_later(const struct tdt__timer *one, const struct tdt__timer *other)
{
	return one->due_ms != other->due_ms ? one->due_ms > other->due_ms
					    : one->number > other->number;
}

/* Make one heap of two, each of which may be empty (NULL), and return its first timer. */
static struct tdt__timer *meld(struct tdt__timer *first, struct tdt__timer *later)
{
	if (first == NULL || (later != NULL && is_later(first, later))) {
		struct tdt__timer *swapped = first;

		first = later;
		later = swapped;
	}
	if (later != NULL) {
		later->before = first;
		later->next = first->child;
		if (later->next != NULL)
			later->next->before = later;
		first->child = later;
	}
	if (first != NULL)
		first->next = first->before = NULL;
	return first;
}

/* Make one heap of siblings: first of every two, then of all of these. */
static struct tdt__timer *meld_siblings(struct tdt__timer *timer)
{
	struct tdt__timer *pairs = NULL, *heap = NULL, *next;

	for (; timer != NULL; timer = next) {
		struct tdt__timer *second = timer->next;

		next = second != NULL ? second->next : NULL;
		timer = meld(timer, second);
		timer->next = pairs;
		pairs = timer;
	}
	for (; pairs != NULL; pairs = next) {
		next = pairs->next;
		heap = meld(heap, pairs);
	}
	return heap;
}

static void insert(struct tdt__driver *driver, struct tdt__timer *timer)
{
	driver->timers = meld(driver->timers, timer);
	timer->runs = true;
}

static void take_out(struct tdt__driver *driver, struct tdt__timer *timer)
{
	struct tdt__timer *later = meld_siblings(timer->child);

	if (timer == driver->timers) {
		driver->timers = later;
	} else {
		if (timer->before->child == timer)
			timer->before->child = timer->next;
		else
			timer->before->next = timer->next;
		if (timer->next != NULL)
			timer->next->before = timer->before;
		driver->timers = meld(driver->timers, later);
	}
	timer->child = NULL;
	timer->runs = false;
}

/* --- The timers ------------------------------------------------------------------ */

/* The first time, on a clock that counts whole ms, when at least `ms` will have passed from now. */
static uint64_t due_in(uint64_t ms)
{
	uint64_t due_ns;

	if (__builtin_mul_overflow(ms, NS_A_MS, &due_ns) ||
	    __builtin_add_overflow(due_ns, tdt__clock(), &due_ns))
		return UINT64_MAX;
	return due_ns / NS_A_MS + (due_ns % NS_A_MS != 0);
}

/*
 * Have the timer fire `ms` milliseconds from now, never earlier.  If the clock cannot count that
 * far, the timer never fires.  Returns 0, or -ENOTSUP: the driver is stopped, or NULL.
 */
static int start_timer(struct tdt__timer *timer, struct tdt__driver *driver)
{
	if (driver == NULL)
		return -ENOTSUP;
	timer->due_ms = due_in(timer->ms);
	TDT__HOLD(&driver->lock);
	if (tdt__driver_stopped(driver))
		return -ENOTSUP;
	timer->driver = tdt__driver_ref(driver);
	timer->number = driver->timers_started++;
	insert(driver, timer);
	tdt__driver_wake(driver, timer->due_ms);
	return 0;
}

/* The driver is not woken now: waking it costs as much as its wake-up when the timer was due. */
static void cancel(struct tdt__timer *timer)
{
	struct tdt__driver *driver = timer->driver;

	if (tdt__driver_is_here(driver)) {
		pthread_mutex_lock(&driver->lock);
		if (timer->runs)
			take_out(driver, timer);
		pthread_mutex_unlock(&driver->lock);
	}
	tdt__driver_unref(driver);
}

uint64_t tdt__timers_due(struct tdt__driver *driver)
{
	return driver->timers != NULL ? driver->timers->due_ms : UINT64_MAX;
}

/*
 * Stop the first timer that is due by `now_ms`, and take its waker.  False: there is none.  The
 * timer may be freed as soon as this returns.
 */
static bool take_due(struct tdt__driver *driver, uint64_t now_ms, bool fires,
		     const struct tdt_waker **waker)
{
	struct tdt__timer *first;

	TDT__HOLD(&driver->lock);
	first = driver->timers;
	if (first == NULL || first->due_ms > now_ms)
		return false;
	take_out(driver, first);
	/* Relaxed: see has_fired(). */
	atomic_store_explicit(&first->fired, fires, memory_order_relaxed);
	*waker = tdt__slot_take(&first->slot);
	return true;
}

void tdt__timers_fire(struct tdt__driver *driver, struct tdt__turn *turn)
{
	const size_t most = sizeof turn->others / sizeof turn->others[0];
	const struct tdt_waker *waker;

	while (turn->n_others < most && take_due(driver, turn->now_ns / NS_A_MS, true, &waker))
		tdt__turn_wake(turn, waker);
}

void tdt__timers_give_up(struct tdt__driver *driver)
{
	const struct tdt_waker *waker;

	while (take_due(driver, UINT64_MAX, false, &waker))
		tdt_waker_wake(waker);
}

/* --- The leaf -------------------------------------------------------------------- */

static bool has_fired(struct tdt__timer *timer)
{
	/* Relaxed: the exchanges of tdt__slot_register() and tdt__slot_take() order this. */
	return atomic_load_explicit(&timer->fired, memory_order_relaxed);
}

static tdt_poll_t end_sleep(struct tdt__timer *timer, tdt_poll_t result)
{
	timer->ended = true;
	if (result != TDT_READY)
		errno = ENOTSUP;
	return result;
}

TDT__LEAF_POLL(tdt_sleep_ms);

tdt_poll_t tdt_sleep_ms_poll(void *state, struct tdt_context *cx)
{
	struct tdt__timer *timer = state;
	const bool starts = timer->driver == NULL;

	if (timer->ended)
		return TDT_PANICKED;
	if (timer->ms == 0 || has_fired(timer))
		return end_sleep(timer, TDT_READY);
	tdt__slot_register(&timer->slot, cx->waker);
	if (starts && start_timer(timer, tdt__current.driver) != 0)
		return end_sleep(timer, TDT_PANICKED);
	if (!starts && has_fired(timer)) /* before the waker was registered */
		return end_sleep(timer, TDT_READY);
	if (tdt__driver_stopped(timer->driver))
		return end_sleep(timer, TDT_PANICKED);
	/* The next sleep may have its timer in the same place. */
	tdt_leaf_waits_on(TDT_WAIT_TIMER, (const void *)(uintptr_t)(timer->number + 1), 0);
	return TDT_PENDING;
}

static void drop_sleep(void *state)
{
	struct tdt__timer *timer = state;

	if (timer->driver != NULL)
		cancel(timer);
	tdt__slot_clear(&timer->slot);
	free(timer);
}

struct tdt_future tdt_sleep_ms(uint64_t ms)
{
	const struct tdt__timer timer = { .ms = ms };

	return tdt__future_new(&timer, sizeof timer, tdt_sleep_ms_poll, drop_sleep);
}
