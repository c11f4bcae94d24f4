// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What the steps of a recording's tasks (timeline.h) add to its summary. */

#include "recording/summing.h"

#include <string.h>

#include <tdt/future.h>

/* ---- Runnable tasks ---- */

static void begin_runnable(struct tdt__summing *summing, struct tdt__tracked *task, uint64_t now)
{
	task->any_parked = tdt__summing_any_parked(summing, now);
	if (task->threads < summing->n_threads)
		task->own_parked =
		    tdt__summing_own_parked(summing, &summing->track[task->threads], now);
}

static void add_latency(struct tdt__summing *summing, const struct tdt__step *step)
{
	struct tdt__tracked *task = &summing->tracked[step->task];
	uint64_t since = step->before.since, ns = tdt__span(since, step->item.ns);
	uint32_t thread = step->item.thread;

	if (since < summing->floor)
		return;
	if (tdt__summary_groups_add_latency(&summing->groups, step->task, since, ns) != 0)
		summing->failed = true;
	tdt__summing_add_delay(summing, step->task, summing->thread[thread].id, since, ns, false);
	if (task->threads == thread)
		tdt__summing_measure_starving(summing, task, since, step->item.ns);
}

/* ---- Polls ---- */

static void poll_begins(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			uint32_t number)
{
	struct tdt__tracked *task = &summing->tracked[number];
	struct tdt__track *track = &summing->track[item->thread];

	if (task->threads == TDT__NO_THREAD)
		task->threads = item->thread;
	else if (task->threads != item->thread)
		task->threads = TDT__MANY_THREADS;
	if (track->depth++ > 0)
		return;
	track->outermost = *item;
	track->task = number;
	track->stack = 0;
}

/* Keep the poll among the longest ones of its thread. */
static void keep_longest(struct tdt__track *track, uint32_t task, uint64_t begin, uint64_t end)
{
	size_t n = track->n_longest;

	while (n > 0 && tdt__span(track->longest[n - 1].begin, track->longest[n - 1].end) <=
			    tdt__span(begin, end))
		n--;
	if (n == TDT__LONGEST_KEPT)
		memmove(track->longest, track->longest + 1, --n * sizeof(track->longest[0]));
	track->longest[n] = (struct tdt__past_poll){ task, begin, end };
	track->n_longest = n + 1;
}

/* A poll that is only remarkable is not one of those that are counted. */
static void poll_ends(struct tdt__summing *summing, const struct tdt__recorded_item *item,
		      uint32_t number)
{
	struct tdt__track *track = &summing->track[item->thread];

	if (track->depth > 0)
		track->depth--;
	tdt__summing_add_poll(summing, item, number, item->ns,
			      track->task == number ? track->stack : 0);
	if (item->remarkable)
		return;
	tdt__summing_count_poll(summing, item, number, item->ns, track->depth == 0);
	keep_longest(track, number, item->begin, item->ns);
}

/* ---- The other events ---- */

static void task_ended(struct tdt__summing *summing, const struct tdt__recorded_item *item,
		       uint32_t number)
{
	struct tdt__summary_panic *panic;

	summing->summary->ended += summing->counts && !item->remarkable;
	if ((item->event.detail & 3) != TDT_PANICKED || !summing->counts)
		return;
	summing->summary->panicked++;
	panic =
	    TDT__INSERT(summing, summing->summary->panics, struct tdt__summary_panic, at, item->ns);
	if (panic != NULL)
		*panic = (struct tdt__summary_panic){ number, summing->thread[item->thread].id,
						      item->ns };
}

static void task_lost(struct tdt__summing *summing, const struct tdt__recorded_item *item,
		      uint32_t number)
{
	struct tdt__summary_lost *lost = TDT__INSERT(summing, summing->summary->lost_wakeups,
						     struct tdt__summary_lost, at, item->ns);

	if (lost != NULL)
		*lost = (struct tdt__summary_lost){ number, item->event.c, item->ns };
}

/* A stack that the recorder found in a poll that was going on. */
static void found_stack(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			uint32_t number)
{
	for (size_t i = 0; i < summing->n_threads; i++) {
		struct tdt__track *track = &summing->track[i];

		if (summing->thread[i].id == item->event.c && track->depth > 0 &&
		    track->task == number)
			track->stack = item->event.a;
	}
}

/* A latency that is sure is known from its wake-up and its poll. */
static void task_delayed(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			 uint32_t number)
{
	uint64_t woken = tdt__span(item->event.c, item->ns);

	if (woken < summing->summary->whole)
		tdt__summing_add_delay(summing, number, summing->thread[item->thread].id, woken,
				       item->event.c, false);
}

/* Returns whether the item is about the task, and says that the task was alive. */
static bool add_item(struct tdt__summing *summing, const struct tdt__recorded_item *item,
		     uint32_t number)
{
	switch (item->event.kind) {
	case TDT_EVENT_POLL:
		if (item->kind == TDT__RECORDED_BEGIN)
			poll_begins(summing, item, number);
		else
			poll_ends(summing, item, number);
		return true;
	case TDT_EVENT_WAKE:
		summing->summary->wakes += summing->counts;
		return true;
	case TDT_EVENT_RUN:
		return true;
	case TDT_EVENT_SPAWN:
		summing->summary->spawned += summing->counts;
		return true;
	case TDT_EVENT_END:
		task_ended(summing, item, number);
		return true;
	case TDT_EVENT_STACK:
		found_stack(summing, item, number);
		return true;
	case TDT_EVENT_DELAY:
		task_delayed(summing, item, number);
		return true;
	case TDT_EVENT_LOST:
		task_lost(summing, item, number);
		return true;
	default:
		return false;
	}
}

void tdt__summing_step(struct tdt__summing *summing, const struct tdt__step *step)
{
	const struct tdt__recorded_item *item = &step->item;
	struct tdt__track *track = &summing->track[item->thread];
	struct tdt__timeline_phase over;
	uint32_t number = step->task;

	summing->counts = item->ns >= summing->floor;
	if (item->event.kind == TDT_EVENT_PARK) {
		if (item->kind == TDT__RECORDED_BEGIN)
			tdt__summing_park(summing, track, item->ns);
		else
			tdt__summing_unpark(summing, track, item->ns);
		return;
	}
	if (tdt__step_ends_phase(step, &over) && over.phase == TDT__WAITING)
		tdt__summing_end_wait(summing, number, &step->before, &over, false);
	if (tdt__step_ends_latency(step))
		add_latency(summing, step);
	if (item->event.kind == TDT_EVENT_RUN && tdt__step_ends(step, TDT__POLLING) &&
	    step->before.sure)
		tdt__summing_add_run(summing, number, &step->before, item->ns);
	if (number == TDT__RECORDED_NONE &&
	    (item->event.kind == TDT_EVENT_STACK || item->event.kind == TDT_EVENT_DELAY ||
	     item->event.kind == TDT_EVENT_LOST))
		number = tdt__recording_task(summing->recording, item->event.task);
	if (number == TDT__RECORDED_NONE)
		return;
	if (add_item(summing, item, number) && summing->counts) {
		summing->summary->tasks += !summing->tracked[number].counted;
		summing->tracked[number].counted = true;
	}
	if (step->task != TDT__RECORDED_NONE && step->after->phase == TDT__RUNNABLE &&
	    step->before.phase != TDT__RUNNABLE)
		begin_runnable(summing, &summing->tracked[number], item->ns);
}
