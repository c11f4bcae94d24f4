// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The summary of a recording, made in one pass over its items in the order of time: see
 * summary_items.c for what an item changes, and summary_end.c for what is listed then.
 */

#include <config.h>

#include "recording/summary.h"

#include <errno.h>
#include <stdlib.h>

#include "recording/summing.h"

/* Starvation, and without the header's thresholds polls and latencies, count from here on, ns. */
#define LEAST_LONG UINT64_C(1000000)

/* ---- The pass ---- */

/* Pass over all items.  Returns 0 or -ENOMEM. */
static int sum_up(struct tdt__summing *summing)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	int err = tdt__recording_begin(&cursor, summing->recording);

	if (err != 0)
		return err;
	while (!summing->failed && tdt__recording_next(&cursor, &item))
		tdt__summing_item(summing, &item);
	tdt__recording_end(&cursor);
	if (summing->failed)
		return -ENOMEM;
	tdt__summing_end(summing);
	return 0;
}

/* ---- Times ---- */

/* From when on no event of a thread that polls was overwritten. */
static uint64_t whole_from(const struct tdt__recording *recording)
{
	size_t n;
	const struct tdt__recorded_ring *ring = tdt__recording_rings(recording, &n);
	uint64_t from = 0;

	for (; n > 0; n--, ring++)
		if (ring->kind == TDT_RING_POLLS && ring->lost > 0 && ring->from > from)
			from = ring->from;
	return from;
}

static void set_times(struct tdt__summing *summing, const struct tdt__summary_limits *limits)
{
	struct tdt__summary *summary = summing->summary;
	const struct tdt_recording *header = tdt__recording_header(summing->recording);

	summary->end = tdt__recording_until(summing->recording);
	summary->whole = whole_from(summing->recording);
	summary->real = tdt__recording_real(summing->recording);
	summing->floor = limits->since != 0 && limits->since < summary->end
			     ? summary->end - limits->since
			     : 0;
	summing->from = summary->whole > summing->floor ? summary->whole : summing->floor;
	summing->long_poll = header->long_poll != 0 ? header->long_poll : LEAST_LONG;
	summing->long_wait = header->long_wait != 0 ? header->long_wait : LEAST_LONG;
	summary->start = summary->end;
	for (size_t i = 0; i < summing->n_threads; i++) {
		uint64_t start = summing->thread[i].whole_from;

		summing->track[i].start = start > summing->floor ? start : summing->floor;
		if (summing->track[i].start < summary->start)
			summary->start = summing->track[i].start;
	}
}

/* ---- The whole ---- */

/* Make room for the lists, each of which has at most `rows` entries. */
static int make_lists(struct tdt__summary *summary, size_t rows)
{
	summary->panics.entry = calloc(rows, sizeof(*summary->panics.entry));
	summary->slow.entry = calloc(rows, sizeof(*summary->slow.entry));
	summary->locks.entry = calloc(rows, sizeof(*summary->locks.entry));
	summary->waits.entry = calloc(rows, sizeof(*summary->waits.entry));
	summary->starved.entry = calloc(rows, sizeof(*summary->starved.entry));
	summary->delays.entry = calloc(rows, sizeof(*summary->delays.entry));
	summary->latency.entry = calloc(rows, sizeof(*summary->latency.entry));
	summary->busy.entry = calloc(rows, sizeof(*summary->busy.entry));
	summary->workers.entry = calloc(rows, sizeof(*summary->workers.entry));
	return summary->panics.entry != NULL && summary->slow.entry != NULL &&
		       summary->locks.entry != NULL && summary->waits.entry != NULL &&
		       summary->starved.entry != NULL && summary->delays.entry != NULL &&
		       summary->latency.entry != NULL && summary->busy.entry != NULL &&
		       summary->workers.entry != NULL
		   ? 0
		   : -ENOMEM;
}

void tdt__summary_free(struct tdt__summary *summary)
{
	if (summary == NULL)
		return;
	free(summary->panics.entry);
	free(summary->slow.entry);
	free(summary->locks.entry);
	free(summary->waits.entry);
	free(summary->starved.entry);
	free(summary->delays.entry);
	free(summary->latency.entry);
	free(summary->busy.entry);
	free(summary->workers.entry);
	free(summary);
}

/* Make the state of each task and thread.  Returns 0 or -ENOMEM. */
static int begin_summing(struct tdt__summing *summing)
{
	summing->tracked = calloc(summing->n_tasks + 1, sizeof(*summing->tracked));
	summing->track = calloc(summing->n_threads + 1, sizeof(*summing->track));
	summing->groups.family_of =
	    calloc(summing->n_tasks + 1, sizeof(*summing->groups.family_of));
	if (summing->tracked == NULL || summing->track == NULL ||
	    summing->groups.family_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < summing->n_tasks; i++) {
		summing->tracked[i].threads = TDT__NO_THREAD;
		summing->tracked[i].behind = TDT__NO_TASK;
	}
	return 0;
}

static int make_summary(struct tdt__summing *summing, const struct tdt__summary_limits *limits)
{
	int err = begin_summing(summing);

	if (err == 0)
		err = make_lists(summing->summary, limits->rows);
	if (err != 0)
		return err;
	set_times(summing, limits);
	return sum_up(summing);
}

struct tdt__summary *tdt__summary_new(const struct tdt__recording *recording,
				      const struct tdt__summary_limits *limits)
{
	struct tdt__summing summing = { .recording = recording, .rows = limits->rows };
	int err;

	summing.summary = calloc(1, sizeof(*summing.summary));
	if (summing.summary == NULL)
		return NULL;
	summing.summary->recording = recording;
	summing.task = tdt__recording_tasks(recording, &summing.n_tasks);
	summing.thread = tdt__recording_threads(recording, &summing.n_threads);
	summing.groups.task = summing.task;
	err = make_summary(&summing, limits);
	tdt__summary_groups_fini(&summing.groups);
	free(summing.groups.family_of);
	free(summing.track);
	free(summing.tracked);
	if (err == 0)
		return summing.summary;
	tdt__summary_free(summing.summary);
	errno = ENOMEM;
	return NULL;
}
