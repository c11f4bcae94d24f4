// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The summary of a recording, made in one pass over the steps of its tasks: see summary_items.c for
 * what a step changes, and summary_end.c for what is listed then.
 */

#include "recording/summary.h"

#include <errno.h>
#include <stdlib.h>

#include "base/result.h"
#include "recording/summing.h"

/* Starvation, and without the header's thresholds polls and latencies, count from here on, ns. */
#define LEAST_LONG UINT64_C(1000000)

/* ---- The pass ---- */

/* Pass over all steps.  Returns 0 or -ENOMEM. */
static int sum_up(struct tdt__summing *summing)
{
	struct tdt__timeline timeline;
	struct tdt__step step;
	int err = tdt__timeline_begin(&timeline, summing->recording);

	if (err != 0)
		return err;
	summing->timeline = &timeline;
	while (!summing->failed && tdt__timeline_next(&timeline, &step))
		tdt__summing_step(summing, &step);
	if (!summing->failed)
		tdt__summing_end(summing);
	tdt__timeline_end(&timeline);
	return summing->failed ? -ENOMEM : 0;
}

/* ---- Times ---- */

static void set_times(struct tdt__summing *summing, const struct tdt__summary_limits *limits)
{
	struct tdt__summary *summary = summing->summary;
	const struct tdt_recording *header = tdt__recording_header(summing->recording);

	summary->end = tdt__recording_until(summing->recording);
	summary->whole = tdt__recording_sure_from(summing->recording);
	summary->real = tdt__recording_real(summing->recording);
	summing->floor =
	    limits->since != 0 && limits->since < summary->end ? summary->end - limits->since : 0;
	summing->long_poll = header->long_poll != 0 ? header->long_poll : LEAST_LONG;
	summing->long_wait = header->long_wait != 0 ? header->long_wait : LEAST_LONG;
	summary->start = summary->end;
	for (size_t i = 0; i < summing->n_threads; i++) {
		uint64_t start = summing->thread[i].whole_from;
		struct tdt__track *track = &summing->track[i];

		track->start = start > summing->floor ? start : summing->floor;
		track->recorded =
		    tdt__recording_time(summing->recording, track->start, summary->end);
		if (track->start < summary->start)
			summary->start = track->start;
	}
}

/* ---- The whole ---- */

/* Do the same with each list. */
#define EACH_LIST(X) \
	X(panics) X(lost_wakeups) X(slow) X(locks) X(waits) X(starved) X(delays) X(latency)        \
	X(busy) X(workers)

/* Make room for the lists, each of which has at most `rows` entries. */
static int make_lists(struct tdt__summary *summary, size_t rows)
{
	bool made = true;

#define MAKE_LIST(list)                                                      \
	summary->list.entry = calloc(rows, sizeof(*summary->list.entry));    \
	made = made && summary->list.entry != NULL;
	EACH_LIST(MAKE_LIST)
	return made ? 0 : -ENOMEM;
}

void tdt__summary_free(struct tdt__summary *summary)
{
	if (summary == NULL)
		return;
#define FREE_LIST(list) free(summary->list.entry);
	EACH_LIST(FREE_LIST)
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
	return tdt__nothing(-ENOMEM);
}
