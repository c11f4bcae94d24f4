// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Counting the durations of a recording, in one pass over the steps of its tasks. */

#include "recording/durations.h"

#include "recording/timeline.h"
#include "recording/waits.h"

const uint64_t tdt__duration_bound[TDT__DURATION_BOUNDS] = {
	1000,	   5000,      10000,	 50000,	     100000,	 500000,     1000000,	  5000000,
	10000000, 50000000, 100000000, 500000000, 1000000000, 5000000000, 10000000000,
};

void tdt__durations_add(struct tdt__durations *durations, uint64_t ns)
{
	unsigned i = 0;

	while (i < TDT__DURATION_BOUNDS && ns > tdt__duration_bound[i])
		i++;
	durations->n[i]++;
	durations->sum += ns;
}

static void time_wait(const struct tdt__recording *recording, const struct tdt__step *step,
		      const struct tdt__recorded_durations *to)
{
	struct tdt__timeline_phase over;
	struct tdt__recorded_waits waits;

	if (!tdt__step_ends_phase(step, &over) || over.phase != TDT__WAITING || !over.sure)
		return;
	tdt__recorded_waits(recording, &step->before.parts, &waits);
	to->waited(to->arg, &recording->task[step->task], waits.main.kind,
		   tdt__span(over.since, over.until));
}

static void time_step(const struct tdt__recording *recording, const struct tdt__recorded_span *span,
		      const struct tdt__step *step, const struct tdt__recorded_durations *to)
{
	const struct tdt__recorded_item *item = &step->item;

	if (item->ns <= span->from || item->ns > span->until)
		return;
	if (item->event.kind == TDT_EVENT_POLL && item->kind == TDT__RECORDED_END)
		tdt__durations_add(to->polls, tdt__span(item->begin, item->ns));
	if (tdt__step_ends_latency(step))
		tdt__durations_add(to->latencies, tdt__span(step->before.since, item->ns));
	if (to->waited != NULL)
		time_wait(recording, step, to);
}

int tdt__durations_count(const struct tdt__recording *recording,
			 const struct tdt__recorded_span *span,
			 const struct tdt__recorded_durations *to)
{
	struct tdt__timeline timeline;
	struct tdt__step step;
	int error = tdt__timeline_begin(&timeline, recording);

	if (error != 0)
		return error;
	while (tdt__timeline_next(&timeline, &step))
		time_step(recording, span, &step, to);
	tdt__timeline_end(&timeline);
	return 0;
}
