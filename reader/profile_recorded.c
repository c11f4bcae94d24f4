// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From the steps of a recording's tasks to the times that they were in each state. */

#include "reader/profile_recorded.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "recording/timeline.h"

struct adding {
	struct tdt__profile_times *times;
	struct tdt__profile_sum *sum;
	uint64_t from, until;
	bool failed;
};

static bool same_time(const struct tdt__profile_time *a, const struct tdt__profile_time *b)
{
	return a->name == b->name && a->state == b->state && a->kind == b->kind;
}

static void merge_time(struct adding *adding, const struct tdt__profile_time *time)
{
	struct tdt__profile_times *times = adding->times;
	uint32_t hash = (uint32_t)tdt__mix(time->name, (uint64_t)time->state << 8 | time->kind), i;

	TDT__INDEX_EACH (i, &times->time_table.index, hash)
		if (same_time(&times->time[i], time))
			break;
	if (i != TDT__INDEX_NONE) {
		times->time[i].ns += time->ns;
		times->time[i].n++;
	} else if (tdt__table_add(&times->time_table, hash, time, sizeof *time) ==
		   TDT__INDEX_NONE) {
		adding->failed = true;
	}
}

/* Add the time of a task in a phase, as far as it is of the profile. */
static void add_phase(struct adding *adding, const struct tdt__recording *recording, uint32_t task,
		      const struct tdt__timeline_task *known, const struct tdt__timeline_phase *was)
{
	struct tdt__profile_time time = { .state = TDT__PROFILE_WAITING, .n = 1 };
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
	time.name = tdt__profile_name(adding->sum, recording->task[task].name,
				      recording->task[task].file, recording->task[task].line);
	merge_time(adding, &time);
}

static void add_timed_step(struct adding *adding, const struct tdt__recording *recording,
			   const struct tdt__step *step)
{
	struct tdt__timeline_phase over;

	if (tdt__step_ends_phase(step, &over))
		add_phase(adding, recording, step->task, &step->before, &over);
}

static int add_timed_steps(struct adding *adding, const struct tdt__recording *recording)
{
	struct tdt__timeline timeline;
	struct tdt__step step;

	if (tdt__timeline_begin(&timeline, recording) != 0)
		return -ENOMEM;
	while (!adding->failed && tdt__timeline_next(&timeline, &step))
		add_timed_step(adding, recording, &step);
	for (size_t i = 0; i < timeline.n_tasks; i++) {
		struct tdt__timeline_phase last = tdt__timeline_last(&timeline.task[i]);

		if (last.until == 0)
			last.until = adding->until;
		add_phase(adding, recording, (uint32_t)i, &timeline.task[i], &last);
	}
	tdt__timeline_end(&timeline);
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
	uint64_t sure = recording->sure_from;
	uint64_t end = recording->until;
	struct adding adding = { .times = times,
				 .sum = sum,
				 .from = from > sure ? from : sure,
				 .until = until < end ? until : end };
	int error;

	*times = (struct tdt__profile_times){ 0 };
	times->ns = tdt__recording_time(recording, adding.from, adding.until);
	error = add_timed_steps(&adding, recording);
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
