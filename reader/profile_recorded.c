// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From the steps of a recording's tasks to the times that they were in each state. */

#include "reader/profile_recorded.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "recording/timeline.h"

/* The name, the state and the kind. */
#define PROFILE_TIME_KEY \
	(offsetof(struct tdt__profile_time, kind) + sizeof(enum tdt_wait_kind))

struct adding {
	struct tdt__profile_times *times;
	struct tdt__profile_sum *sum;
	struct tdt__timeline timeline;
	uint64_t from, until;
	bool failed;
};

static void merge_time(struct adding *adding, const struct tdt__profile_time *time)
{
	struct tdt__profile_times *times = adding->times;
	const struct tdt__profile_time none = {
		.name = time->name, .state = time->state, .kind = time->kind
	};
	uint32_t i = tdt__table_note(&times->time_table, &none,
				     PROFILE_TIME_KEY, sizeof none);

	if (i == TDT__INDEX_NONE) {
		adding->failed = true;
		return;
	}
	times->time[i].ns += time->ns;
	times->time[i].n++;
}

static void add_phase(struct adding *adding, uint32_t task,
		      const struct tdt__timeline_task *known, const struct tdt__timeline_phase *was)
{
	const struct tdt__recording *recording = adding->timeline.recording;
	const struct tdt__recorded_task *of = &recording->task[task];
	struct tdt__profile_time time = { .state = TDT__PROFILE_WAITING };
	uint64_t since = was->since > adding->from ? was->since : adding->from;
	uint64_t end = was->until < adding->until ? was->until : adding->until;
	struct tdt__recorded_waits waits;

	if (was->phase == TDT__UNKNOWN || was->phase == TDT__ENDED || since >= end)
		return;
	if (was->phase == TDT__RUNNABLE)
		time.state = TDT__PROFILE_RUNNABLE;
	else if (was->phase == TDT__POLLING)
		time.state = TDT__PROFILE_POLLING;
	else if (was->phase == TDT__WAITING) {
		tdt__recorded_waits(recording, &known->parts, &waits);
		time.kind = waits.main.kind;
	}
	time.ns = tdt__recording_time(recording, since, end);
	time.name = tdt__profile_name(adding->sum, of->name,
				      of->has_entry ? of->poll_function : 0, of->file, of->line);
	merge_time(adding, &time);
}

static int add_timed_steps(struct adding *adding)
{
	struct tdt__timeline *timeline = &adding->timeline;
	struct tdt__timeline_phase over;
	struct tdt__step step;

	while (!adding->failed && tdt__timeline_next(timeline, &step))
		if (tdt__step_ends_phase(&step, &over))
			add_phase(adding, step.task, &step.before, &over);
	for (uint32_t i = 0; i < timeline->n_tasks; i++) {
		over = tdt__timeline_last(&timeline->task[i]);
		if (over.until == 0)
			over.until = adding->until;
		add_phase(adding, i, &timeline->task[i], &over);
	}
	return adding->failed ? -ENOMEM : 0;
}

static int by_length(const void *a, const void *b)
{
	const struct tdt__profile_time *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

int tdt__profile_times_read(struct tdt__profile_times *times, struct tdt__profile_sum *sum,
			    const struct tdt__recording *recording, uint64_t from, uint64_t until)
{
	uint64_t sure = recording->sure_from, end = recording->until;
	struct adding adding = { .times = times,
				 .sum = sum,
				 .from = from > sure ? from : sure,
				 .until = until < end ? until : end };
	int error = tdt__timeline_begin(&adding.timeline, recording);

	*times = (struct tdt__profile_times){ 0 };
	if (error != 0)
		return error;
	times->ns = tdt__recording_time(recording, adding.from, adding.until);
	error = add_timed_steps(&adding);
	tdt__timeline_end(&adding.timeline);
	if (error != 0)
		tdt__profile_times_fini(times);
	else if (times->n > 1)
		qsort(times->time, times->n, sizeof times->time[0], by_length);
	return error;
}

void tdt__profile_times_fini(struct tdt__profile_times *times)
{
	tdt__table_fini(&times->time_table);
}
