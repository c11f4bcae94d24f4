// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A snapshot when something happens: recorder/trigger.h tells when. */

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

#include <tdt/recorder.h>

#include "base/clock.h"
#include "base/options.h"
#include "dump/dump_signal.h"
#include "dump/hourly.h"
#include "dump/recorder_snapshot.h"
#include "host/start.h"
#include "recorder/clock.h"
#include "recorder/trigger.h"

/* Protected by tdt__signal_lock. */
static struct {
	char path[PATH_MAX];
	uint64_t since_ns;
	struct tdt__hourly limit;
} wish;

/* On the recorder's thread. */
static void take_snapshot(void)
{
	char path[PATH_MAX];
	uint64_t since_ns;
	bool allowed;

	pthread_mutex_lock(&tdt__signal_lock);
	allowed = tdt__hourly_allows(&wish.limit, tdt__clock());
	strcpy(path, wish.path);
	since_ns = wish.since_ns;
	pthread_mutex_unlock(&tdt__signal_lock);
	if (allowed)
		tdt__recorder_snapshot_by_pattern(path, since_ns);
}

static int check_wish(const struct tdt_recorder_trigger *options)
{
	if (options->path == NULL || options->path[0] == '\0' ||
	    options->per_hour > TDT__HOURLY_MAX || options->panics > 1)
		return -EINVAL;
	return strlen(options->path) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static uint64_t or_never(uint64_t threshold)
{
	return threshold != 0 ? threshold : UINT64_MAX;
}

/* The thresholds; then what is to be done. */
static void set_wish(const struct tdt_recorder_trigger *options)
{
	strcpy(wish.path, options->path);
	wish.since_ns = options->since_ns;
	wish.limit = (struct tdt__hourly){ .most = options->per_hour != 0 ? options->per_hour : 4 };
	TDT__POKE(tdt__trigger.long_poll, or_never(tdt__ticks_of_ns(options->long_poll_ns)));
	TDT__POKE(tdt__trigger.long_wait, or_never(options->long_wait_ns));
	TDT__POKE(tdt__trigger.panics, options->panics != 0);
	atomic_store_explicit(&tdt__trigger.pulled, false, memory_order_relaxed);
	/* Release the wish.  Pairs with tdt__trigger_round(). */
	atomic_store_explicit(&tdt__trigger.run, take_snapshot, memory_order_release);
}

static void end_wish(void)
{
	atomic_store_explicit(&tdt__trigger.run, NULL, memory_order_relaxed);
	TDT__POKE(tdt__trigger.long_poll, UINT64_MAX);
	TDT__POKE(tdt__trigger.long_wait, UINT64_MAX);
	TDT__POKE(tdt__trigger.panics, false);
}

int tdt_recorder_on_trigger(const struct tdt_recorder_trigger *trigger)
{
	struct tdt_recorder_trigger ours = { 0 };
	int saved = errno, error = tdt__options_read(&ours, sizeof ours, trigger);

	if (error == 0 && trigger != NULL)
		error = check_wish(&ours);
	if (error == 0)
		error = tdt__start();
	if (error == 0) {
		tdt__ticks_begin();
		pthread_mutex_lock(&tdt__signal_lock);
		if (trigger != NULL)
			set_wish(&ours);
		else
			end_wish();
		pthread_mutex_unlock(&tdt__signal_lock);
	}
	errno = error == 0 ? saved : -error;
	return error;
}
