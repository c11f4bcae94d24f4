// SPDX-License-Identifier: Apache-2.0 OR MIT
/* How long polls and wake-ups took in the last seconds, from the target's recording. */

#include "cli/top_times.h"

#include <stdlib.h>

#include "base/clock.h"
#include "reader/recorded.h"
#include "recording/timeline.h"
#include "tree-printer/strings.h"

#define TIMES_WINDOW (10 * (uint64_t)TDT__SECOND)

/* The events since `from`, as far as they are not only remarkable. */
static void count_step(struct top_times *times, const struct tdt__step *step, uint64_t from)
{
	const struct tdt__recorded_item *item = &step->item;

	if (item->event.kind != TDT_EVENT_POLL || item->remarkable || item->ns < from)
		return;
	if (item->kind == TDT__RECORDED_END && item->end >= item->begin)
		top_histogram_add(&times->polls, item->end - item->begin);
	if (tdt__step_ends_latency(step) && item->ns >= step->before.since)
		top_histogram_add(&times->latencies, item->ns - step->before.since);
}

static int count_steps(struct top_times *times, const struct tdt__recording *recording)
{
	uint64_t until = tdt__recording_until(recording);
	uint64_t from = tdt__recording_sure_from(recording);
	struct tdt__timeline timeline;
	struct tdt__step step;
	int error = tdt__timeline_begin(&timeline, recording);

	if (error != 0)
		return error;
	if (until > TIMES_WINDOW && until - TIMES_WINDOW > from)
		from = until - TIMES_WINDOW;
	times->window_ns = tdt__recording_time(recording, from, until);
	while (tdt__timeline_next(&timeline, &step))
		count_step(times, &step, from);
	tdt__timeline_end(&timeline);
	return 0;
}

/* The first copy of the library that has recorded. */
static const struct tdt__found *recorded_registry(const struct outside *outside)
{
	for (size_t i = 0; i < outside->n_found; i++)
		if (outside->found[i].registry.rings != 0)
			return &outside->found[i];
	return &outside->found[0];
}

void top_times_read(struct top_times *times, struct outside *outside)
{
	const struct tdt__found *found = recorded_registry(outside);
	struct tdt__string why = { 0 };
	struct tdt__recording *recording;
	struct tdt__trouble trouble;
	void *copy;
	int error;

	times->runs = tdt__recorded_runs(&outside->target, found);
	error = tdt__recorded_open(&outside->target, &outside->images, found, &copy, &recording,
				   &trouble);
	if (error == 0) {
		error = count_steps(times, recording);
		if (error != 0)
			tdt__trouble(&trouble, error, "there is not enough memory");
		tdt__recording_close(recording);
		free(copy);
	}
	if (error != 0)
		tdt__string_escape(&why, trouble.text, false, '\0');
	times->there = error == 0;
	top_keep_text(times->trouble, &why);
}
