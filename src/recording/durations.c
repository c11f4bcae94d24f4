// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Counting the durations of a recording, in one pass over its items in the order of time. */

#include <config.h>

#include "recording/durations.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/future.h>

#include "recording/read.h"

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

/* What is known of a task at some time. */
struct timed {
	uint64_t runnable; /* since when; 0: the task is not known to be runnable */
	bool polling, woken; /* `woken`: during the poll */
};

struct timing {
	const struct tdt__recorded_span *span;
	uint64_t whole; /* from when on no event was overwritten */
	struct timed *timed;
	struct tdt__durations *polls, *latencies;
};

static bool is_in_span(const struct timing *timing, uint64_t ns)
{
	return ns > timing->span->from && ns <= timing->span->until;
}

/* In a damaged recording a poll may end before it begins. */
static uint64_t lasted(uint64_t begin, uint64_t end)
{
	return end > begin ? end - begin : 0;
}

static void time_begin(struct timing *timing, struct timed *task, uint64_t now)
{
	if (task->runnable != 0 && task->runnable >= timing->whole && is_in_span(timing, now))
		tdt__durations_add(timing->latencies, lasted(task->runnable, now));
	*task = (struct timed){ .polling = true };
}

static void time_end(struct timing *timing, struct timed *task,
		     const struct tdt__recorded_item *item)
{
	bool again = task->woken && (item->event.detail & 3) == TDT_PENDING;

	if (is_in_span(timing, item->ns))
		tdt__durations_add(timing->polls, lasted(item->begin, item->ns));
	*task = (struct timed){ .runnable = again ? item->ns : 0 };
}

static void time_wake(struct timed *task, uint64_t now)
{
	if (task->polling)
		task->woken = true;
	else if (task->runnable == 0)
		task->runnable = now;
}

static void time_item(struct timing *timing, struct timed *task,
		      const struct tdt__recorded_item *item)
{
	if (item->kind == TDT__RECORDED_BEGIN)
		time_begin(timing, task, item->ns);
	else if (item->kind == TDT__RECORDED_END)
		time_end(timing, task, item);
	else if (item->event.kind == TDT_EVENT_WAKE)
		time_wake(task, item->ns);
	else if (item->event.kind == TDT_EVENT_END && !task->polling)
		*task = (struct timed){ 0 };
}

static bool is_timed(uint8_t kind)
{
	return kind == TDT_EVENT_POLL || kind == TDT_EVENT_WAKE || kind == TDT_EVENT_END;
}

/* A remarkable event is without its surroundings, so only its poll counts. */
static void time_remarkable(struct timing *timing, const struct tdt__recorded_item *item)
{
	if (item->event.kind == TDT_EVENT_POLL && item->kind == TDT__RECORDED_END &&
	    is_in_span(timing, item->ns))
		tdt__durations_add(timing->polls, lasted(item->begin, item->ns));
}

static void time_items(struct timing *timing, const struct tdt__recording *recording,
		       struct tdt__recording_cursor *cursor)
{
	struct tdt__recorded_item item;

	while (tdt__recording_next(cursor, &item)) {
		uint32_t task = is_timed(item.event.kind)
					? tdt__recording_task(recording, item.event.task)
					: TDT__RECORDED_NONE;

		if (item.remarkable)
			time_remarkable(timing, &item);
		else if (task != TDT__RECORDED_NONE)
			time_item(timing, &timing->timed[task], &item);
	}
}

int tdt__durations_count(const struct tdt__recording *recording,
			 const struct tdt__recorded_span *span, struct tdt__durations *polls,
			 struct tdt__durations *latencies)
{
	struct timing timing = { .span = span,
				 .whole = tdt__recording_whole_from(recording),
				 .polls = polls,
				 .latencies = latencies };
	struct tdt__recording_cursor cursor;
	size_t n;

	tdt__recording_tasks(recording, &n);
	timing.timed = calloc(n + 1, sizeof *timing.timed);
	if (timing.timed == NULL || tdt__recording_begin(&cursor, recording) != 0) {
		free(timing.timed);
		return -ENOMEM;
	}
	time_items(&timing, recording, &cursor);
	tdt__recording_end(&cursor);
	free(timing.timed);
	return 0;
}
