// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From the steps of a recording's tasks to the times that they were in each state. */

#include <config.h>

#include "reader/profile_recorded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recording/timeline.h"

struct adding {
	struct tdt__profile_times *times;
	struct tdt__profile_sum *sum;
	const struct tdt__recorded_task *task;
	uint8_t *kind; /* of the last wait of each task */
	uint64_t from, until;
	bool failed;
};

static uint32_t name_recorded(struct tdt__profile_sum *sum, const struct tdt__recorded_task *task)
{
	const char *slash = strrchr(task->file, '/');
	char place[TDT__PROFILE_NAME_MAX];

	if (task->name[0] != '\0' || task->file[0] == '\0')
		return tdt__profile_name(sum, task->name);
	snprintf(place, sizeof place, "spawned at %s:%" PRIu32,
		 slash != NULL ? slash + 1 : task->file, task->line);
	return tdt__profile_place_name(sum, place);
}

static bool room_for_time(struct tdt__profile_times *times)
{
	size_t room = times->room != 0 ? 2 * times->room : 16;
	struct tdt__profile_time *grown;

	if (times->n < times->room)
		return true;
	if (tdt__index_reserve(&times->index, room) != 0)
		return false;
	grown = realloc(times->time, room * sizeof *grown);
	if (grown == NULL)
		return false;
	times->time = grown;
	times->room = room;
	return true;
}

static bool same_time(const struct tdt__profile_time *a, const struct tdt__profile_time *b)
{
	return a->name == b->name && a->state == b->state && a->kind == b->kind;
}

static void merge_time(struct adding *adding, const struct tdt__profile_time *time)
{
	struct tdt__profile_times *times = adding->times;
	uint32_t hash = (uint32_t)tdt__mix(time->name, (uint64_t)time->state << 8 | time->kind), i;
	size_t tried = 0;

	do {
		i = tdt__index_next(&times->index, hash, &tried);
	} while (i != TDT__INDEX_NONE && !same_time(&times->time[i], time));
	if (i != TDT__INDEX_NONE) {
		times->time[i].ns += time->ns;
		times->time[i].n++;
	} else if (room_for_time(times)) {
		tdt__index_add(&times->index, hash, (uint32_t)times->n);
		times->time[times->n++] = *time;
	} else {
		adding->failed = true;
	}
}

/* Add the time of a task in a phase that ended at `end`, as far as it is of the profile. */
static void add_phase(struct adding *adding, uint32_t task, enum tdt__phase phase, uint64_t since,
		      uint64_t end)
{
	struct tdt__profile_time time = { .state = TDT__PROFILE_WAITING, .n = 1 };

	since = since > adding->from ? since : adding->from;
	end = end < adding->until ? end : adding->until;
	if (phase == TDT__UNKNOWN || phase == TDT__ENDED || since >= end)
		return;
	if (phase == TDT__RUNNABLE)
		time.state = TDT__PROFILE_RUNNABLE;
	else if (phase == TDT__POLLING)
		time.state = TDT__PROFILE_POLLING;
	else if (phase == TDT__WAITING)
		time.kind = (enum tdt_wait_kind)adding->kind[task];
	time.ns = end - since;
	time.name = name_recorded(adding->sum, &adding->task[task]);
	merge_time(adding, &time);
}

/* What the first leaf that reported waits for, in the poll that begins. */
static uint8_t kind_of_poll(const struct tdt__recording *recording,
			    const struct tdt__recorded_item *begin)
{
	for (uint32_t i = 0; i < begin->n_parts; i++) {
		struct tdt__recorded_item part;

		tdt__recording_part(recording, begin, i, &part);
		if (part.event.kind == TDT_EVENT_WAIT)
			return part.event.detail <= TDT_WAIT_OTHER ? part.event.detail
								   : TDT_WAIT_OTHER;
	}
	return TDT_WAIT_UNKNOWN;
}

static void add_timed_step(struct adding *adding, const struct tdt__recording *recording,
		     const struct tdt__step *step)
{
	if (step->task == TDT__RECORDED_NONE)
		return;
	if (step->after.phase != step->before.phase || step->after.since != step->before.since)
		add_phase(adding, step->task, step->before.phase, step->before.since,
			  step->item.ns);
	if (step->item.event.kind == TDT_EVENT_POLL && step->item.kind == TDT__RECORDED_BEGIN)
		adding->kind[step->task] = kind_of_poll(recording, &step->item);
}

static int add_timed_steps(struct adding *adding, const struct tdt__recording *recording)
{
	struct tdt__timeline timeline;
	struct tdt__step step;

	if (tdt__timeline_begin(&timeline, recording) != 0)
		return -ENOMEM;
	while (!adding->failed && tdt__timeline_next(&timeline, &step))
		add_timed_step(adding, recording, &step);
	for (size_t i = 0; i < timeline.n_tasks; i++)
		add_phase(adding, (uint32_t)i, timeline.task[i].phase, timeline.task[i].since,
			  adding->until);
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
	uint64_t whole = tdt__recording_polls_from(recording);
	uint64_t end = tdt__recording_until(recording);
	struct adding adding = { .times = times,
				 .sum = sum,
				 .from = from > whole ? from : whole,
				 .until = until < end ? until : end };
	size_t n;
	int error = -ENOMEM;

	*times = (struct tdt__profile_times){ 0 };
	adding.task = tdt__recording_tasks(recording, &n);
	adding.kind = calloc(n + 1, 1);
	if (adding.until > adding.from)
		times->ns = adding.until - adding.from;
	if (adding.kind != NULL)
		error = add_timed_steps(&adding, recording);
	free(adding.kind);
	if (error != 0)
		tdt__profile_times_fini(times);
	else if (times->n > 1)
		qsort(times->time, times->n, sizeof times->time[0], by_length);
	return error;
}

void tdt__profile_times_fini(struct tdt__profile_times *times)
{
	free(times->time);
	tdt__index_fini(&times->index);
	*times = (struct tdt__profile_times){ 0 };
}
