// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Starting and stopping the watch, and the ticker: a thread that lives from the first tdt_watch()
 * to the end of the process.  While the watch is off, the ticker sleeps without a limit.  So the
 * call that stops the watch need not wait for it, and any thread may stop the watch.
 */

#include "watch/watch.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/watch.h>

#include "base/clock.h"
#include "base/options.h"
#include "base/result.h"
#include "base/service.h"
#include "base/text.h"
#include "capture/counted.h"
#include "host/start.h"

/* Who wants a watch. */
enum watcher { WATCHER_PROGRAM, WATCHER_OUTSIDE, WATCHERS };

/* All under tdt__watch_lock. */
static uint64_t intervals[WATCHERS]; /* what each of them wants; 0: no watch */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* signalled when `interval` changes */
static uint64_t interval;                                 /* 0: the watch is off */
static uint16_t epoch;                                    /* the last epoch */
static uint64_t ticked;                                   /* the last tick, or the start */
static uint64_t age;                                      /* of the epoch, by the ticks in it */
static uint32_t taken;                                    /* captures made before the epoch */
static bool ticking;                                      /* there is a ticker */
static bool called; /* tdt_watch() was called: the environment no longer counts */

#define CLONES 1024 /* counted clones that the pool holds after each tick */

/* So many things are made before the lock is given up: fork() waits for it. */
#define WATCH_SLICE 64

static void give_way(void)
{
	pthread_mutex_unlock(&tdt__watch_lock);
	sched_yield();
	pthread_mutex_lock(&tdt__watch_lock);
}

/*
 * Give the captures the modules that are loaded now, and fill the pool of counted clones.  Gives up
 * the lock meanwhile, because this may wait for the loader.
 */
static bool renew_spares(void)
{
	struct tdt__walk walk;
	bool ready;

	pthread_mutex_unlock(&tdt__watch_lock);
	ready = tdt__walk_init(&walk);
	if (tdt__counted_wanted(false))
		tdt__counted_stock(CLONES);
	pthread_mutex_lock(&tdt__watch_lock);
	if (ready)
		tdt__spare_know(&walk);
	return ready;
}

bool tdt__watch_stock_spares(void)
{
	bool ready;

	pthread_mutex_lock(&tdt__watch_lock);
	ready = renew_spares() && tdt__spare_stock();
	pthread_mutex_unlock(&tdt__watch_lock);
	return ready;
}

/* Fill the pools that polls take from.  Gives up the lock in between.  False: not enough memory. */
static bool stock(void)
{
	bool ready = renew_spares() && tdt__spare_stock();
	int more;

	tdt__last_tree_count();
	while ((more = tdt__last_tree_stock(WATCH_SLICE)) > 0)
		give_way();
	return ready && more == 0;
}

static void advance(void)
{
	if (++epoch == TDT__PROMISED)
		epoch = 1;
	atomic_store_explicit(&tdt__epoch.tick, age != 0 ? age : interval, memory_order_relaxed);
	tdt__epoch_set(epoch);
	age = 0;
	taken = tdt__spare_taken();
}

/*
 * How long the epoch is to last, by the number of captures in it: so all captures together take at
 * most a certain part of a CPU's time, however many tasks there are.  The time has a limit, because
 * a task's first poll is captured in any epoch: tasks that come and go would make the epoch
 * endless.
 */
static uint64_t due(void)
{
	uint64_t captures = tdt__spare_taken() - taken,
		 ns = captures * (TDT__SECOND / TDT__WATCH_MOST);

	return ns < TDT__WATCH_LONGEST ? ns : TDT__WATCH_LONGEST;
}

/* Without memory the pools hold less, and tasks that find nothing there are left out. */
static void tick(uint64_t passed)
{
	TDT__POKE(tdt__registry.now, tdt__clock());
	stock();
	if (interval == 0) /* the watch was stopped meanwhile */
		return;
	age += passed;
	if (age >= due())
		advance();
}

void tdt__watch_pass(uint64_t ns)
{
	pthread_mutex_lock(&tdt__watch_lock);
	if (interval != 0)
		tick(ns);
	pthread_mutex_unlock(&tdt__watch_lock);
}

/* Sleep until `time`, or until the interval changes. */
static void sleep_until(uint64_t time)
{
	const struct timespec until = tdt__timespec(time);

	pthread_cond_clockwait(&changed, &tdt__watch_lock, CLOCK_MONOTONIC, &until);
}

/* One tick after each interval; ticks that are late by an interval or more are left out. */
static void *tdt_watch_ticker(void *arg)
{
	uint64_t last = tdt__clock();

	(void)arg;
	pthread_setname_np(pthread_self(), "tdt-watch");
	pthread_mutex_lock(&tdt__watch_lock);
	for (;;) {
		uint64_t now = tdt__clock();

		if (interval == 0) {
			pthread_cond_wait(&changed, &tdt__watch_lock);
			last = tdt__clock();
		} else if (now - last >= interval) {
			tick(now - ticked);
			ticked = now;
			last += interval;
			if (now - last >= interval)
				last = now;
		} else {
			sleep_until(last + interval);
		}
	}
	return NULL;
}

/* The shorter of two intervals, of which 0 is none. */
static uint64_t shorter(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static void want_interval(enum watcher watcher, uint64_t ns)
{
	intervals[watcher] = ns;
	ns = shorter(intervals[WATCHER_PROGRAM], intervals[WATCHER_OUTSIDE]);
	interval = ns;
	TDT__POKE(tdt__registry.watch_ns, ns);
	if (ns == 0) {
		tdt__epoch_set(0);
	} else if (tdt__epoch_now() == 0) {
		age = 0;
		ticked = tdt__clock();
		advance();
	}
	pthread_cond_signal(&changed);
}

/* Set the interval that `watcher` wants.  `tasks` tasks have no tree yet. */
static int watch(enum watcher watcher, int64_t ns, uint32_t tasks)
{
	int error = 0;

	if (ns > 0 && ns < TDT_WATCH_MIN_NS)
		ns = TDT_WATCH_MIN_NS;
	if (ns > 0 && interval == 0)
		tdt__last_tree_expect(tasks);
	if (ns > 0 && interval == 0 && !stock())
		return -ENOMEM;
	if (ns > 0)
		error = tdt__service_need(tdt_watch_ticker, &ticking, &tdt__watch_lock);
	if (error == 0)
		want_interval(watcher, (uint64_t)ns);
	return error;
}

int tdt_watch(int64_t interval_ns, const struct tdt_watch_options *options)
{
	struct tdt_watch_options ours;
	int error = tdt__options_read(&ours, sizeof ours, options);
	uint32_t tasks = interval_ns > 0 ? tdt__last_tree_without() : 0;

	if (error == 0)
		error = interval_ns < 0 || ours.flags != 0 ? -EINVAL : tdt__start();
	if (error == 0) {
		pthread_mutex_lock(&tdt__watch_lock);
		called = true;
		error = watch(WATCHER_PROGRAM, interval_ns, tasks);
		pthread_mutex_unlock(&tdt__watch_lock);
	}
	return tdt__result(error);
}

int tdt__watch_outside(int64_t interval_ns, uint64_t *in_force)
{
	uint32_t tasks = interval_ns > 0 ? tdt__last_tree_without() : 0;
	int error;

	pthread_mutex_lock(&tdt__watch_lock);
	error = watch(WATCHER_OUTSIDE, interval_ns, tasks);
	*in_force = interval;
	pthread_mutex_unlock(&tdt__watch_lock);
	return error;
}

void tdt__watch_forked(void)
{
	memset(intervals, 0, sizeof intervals);
	changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
	ticking = false;
	interval = 0;
	TDT__POKE(tdt__registry.watch_ns, 0);
	tdt__epoch_set(0);
}

int64_t tdt__watch_parse(const char *text)
{
	static const struct tdt__text_unit units[] = { { "", 1000000 },	    { "ns", 1 },
						       { "us", 1000 },	    { "ms", 1000000 },
						       { "s", 1000000000 }, { NULL, 0 } };
	uint64_t value = 0;

	if (text == NULL)
		return -1;
	return *text == '\0' || (tdt__text_number(text, units, &value) && value <= INT64_MAX)
		       ? (int64_t)value
		       : -1;
}

void tdt__watch_by_environment(void)
{
	int64_t ns = tdt__watch_parse(secure_getenv("TDT_WATCH"));
	int saved = errno;

	pthread_mutex_lock(&tdt__watch_lock);
	if (ns > 0 && !called)
		watch(WATCHER_PROGRAM, ns, 0);
	pthread_mutex_unlock(&tdt__watch_lock);
	errno = saved;
}
