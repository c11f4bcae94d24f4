// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * How the items of a recording change the state of its tasks and threads, for its summary.
 *
 * Each task has a state, which the items change.  A task is waiting or runnable only between two
 * polls that were both recorded, and while it is being polled, neither:
 *
 *	             wake-up              poll begins
 *	  waiting ───────────▶ runnable ──────────────▶ polling
 *	     ▲                     ▲  woken meanwhile      │
 *	     └──── returned ───────┴───── pending ─────────┘
 */

#include <config.h>

#include "recording/summing.h"

#include <string.h>

#include <tdt/future.h>

/* ---- Waits ---- */

/* What the leaves of a poll wait for: a lock if there is one, else the first report. */
static void read_wait(struct tdt__summing *summing, const struct tdt__recorded_item *begin,
		      struct tdt_wait *wait, uint32_t *stack)
{
	struct tdt__recorded_item part;
	char payload[TDT__PAYLOAD_MAX + 1];

	*wait = (struct tdt_wait){ .kind = TDT_WAIT_UNKNOWN };
	*stack = 0;
	for (uint32_t i = 0; i < begin->n_parts; i++) {
		struct tdt_wait next = { 0 };

		tdt__recording_part(summing->recording, begin, i, &part);
		if (part.event.kind == TDT_EVENT_STACK && *stack == 0)
			*stack = part.event.a;
		if (part.event.kind != TDT_EVENT_WAIT || tdt__is_lock_wait(wait))
			continue;
		next.kind = (enum tdt_wait_kind)part.event.detail;
		next.object = part.event.c;
		next.owner = part.event.time;
		tdt__recording_payload(summing->recording, &part, payload);
		memcpy(next.name, payload, strnlen(payload, TDT_WAIT_NAME_MAX));
		if (wait->kind == TDT_WAIT_UNKNOWN || tdt__is_lock_wait(&next))
			*wait = next;
	}
}

/* ---- Runnable tasks ---- */

static void begin_runnable(struct tdt__summing *summing, uint32_t number, uint64_t now)
{
	struct tdt__tracked *task = &summing->tracked[number];

	task->activity = TDT__IS_RUNNABLE;
	task->since = now;
	task->any_parked = tdt__summing_any_parked(summing, now);
	if (task->threads < summing->n_threads)
		task->own_parked = tdt__summing_own_parked(&summing->track[task->threads], now);
}

static void end_runnable(struct tdt__summing *summing, uint32_t number, uint32_t thread,
			 uint64_t now)
{
	struct tdt__tracked *task = &summing->tracked[number];

	if (task->activity != TDT__IS_RUNNABLE || task->since < summing->from)
		return;
	if (tdt__summary_groups_add_latency(&summing->groups, number, task->since,
					    tdt__span(task->since, now)) != 0)
		summing->failed = true;
	tdt__summing_add_delay(summing, number, summing->thread[thread].id, task->since,
			       tdt__span(task->since, now), false);
	if (task->threads == thread)
		tdt__summing_measure_starving(summing, task, now);
}

/* ---- Polls ---- */

static void poll_begins(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			uint32_t number)
{
	struct tdt__tracked *task = &summing->tracked[number];
	struct tdt__track *track = &summing->track[item->thread];
	struct tdt_wait wait;

	tdt__summing_end_wait(summing, number, item->ns, false);
	end_runnable(summing, number, item->thread, item->ns);
	read_wait(summing, item, &wait, &task->stack);
	task->group = tdt__summary_groups_wait(&summing->groups, number, &wait, task->stack);
	summing->failed |= task->group == TDT__NO_GROUP;
	task->activity = TDT__IS_POLLING;
	task->woken = false;
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

static void poll_ends(struct tdt__summing *summing, const struct tdt__recorded_item *item,
		      uint32_t number)
{
	struct tdt__tracked *task = &summing->tracked[number];
	struct tdt__track *track = &summing->track[item->thread];

	if (track->depth > 0)
		track->depth--;
	tdt__summing_add_poll(summing, item, number, item->ns,
			      track->task == number ? track->stack : 0);
	tdt__summing_count_poll(summing, item, number, item->ns, track->depth == 0);
	keep_longest(track, number, item->begin, item->ns);
	task->activity = TDT__IS_ELSEWHERE;
	if ((item->event.detail & 3) != TDT_PENDING)
		return;
	if (task->woken) {
		begin_runnable(summing, number, item->ns);
	} else {
		task->activity = TDT__IS_WAITING;
		task->since = item->ns;
	}
}

/* ---- The other events ---- */

static void task_woken(struct tdt__summing *summing, uint32_t number, uint64_t now)
{
	struct tdt__tracked *task = &summing->tracked[number];

	summing->summary->wakes += summing->counts;
	tdt__summing_end_wait(summing, number, now, false);
	if (task->activity == TDT__IS_POLLING)
		task->woken = true;
	else if (task->activity != TDT__IS_RUNNABLE)
		begin_runnable(summing, number, now);
}

static void task_ended(struct tdt__summing *summing, const struct tdt__recorded_item *item,
		       uint32_t number)
{
	struct tdt__summary_panic *panic;

	summing->summary->ended += summing->counts && !item->remarkable;
	if (summing->tracked[number].activity == TDT__IS_WAITING)
		tdt__summing_end_wait(summing, number, item->ns, false);
	if (summing->tracked[number].activity != TDT__IS_POLLING)
		summing->tracked[number].activity = TDT__IS_ELSEWHERE;
	if (item->event.detail != TDT_PANICKED || !summing->counts)
		return;
	summing->summary->panicked++;
	panic =
	    TDT__INSERT(summing, summing->summary->panics, struct tdt__summary_panic, at, item->ns);
	if (panic != NULL)
		*panic = (struct tdt__summary_panic){ number, summing->thread[item->thread].id,
						      item->ns };
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

static void one_of_task(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			uint32_t number)
{
	switch (item->event.kind) {
	case TDT_EVENT_POLL:
		if (item->kind == TDT__RECORDED_BEGIN)
			poll_begins(summing, item, number);
		else
			poll_ends(summing, item, number);
		break;
	case TDT_EVENT_WAKE:
		task_woken(summing, number, item->ns);
		break;
	case TDT_EVENT_SPAWN:
		summing->summary->spawned += summing->counts;
		break;
	case TDT_EVENT_END:
		task_ended(summing, item, number);
		break;
	case TDT_EVENT_STACK:
		found_stack(summing, item, number);
		break;
	default:
		break;
	}
}

/*
 * An event of a ring of remarkable ones, from before the thread's other events.  A latency since
 * the time when waits count is known from the wake-up and the poll.
 */
static void one_remarkable(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			   uint32_t number)
{
	uint64_t woken = tdt__span(item->event.c, item->ns);

	if (item->event.kind == TDT_EVENT_POLL && item->kind == TDT__RECORDED_END)
		tdt__summing_add_poll(summing, item, number, item->ns, 0);
	else if (item->event.kind == TDT_EVENT_END)
		task_ended(summing, item, number);
	else if (item->event.kind == TDT_EVENT_DELAY && woken < summing->summary->whole)
		tdt__summing_add_delay(summing, number, summing->thread[item->thread].id, woken,
				       item->event.c, false);
}

/* Whether an event is about a task, and says that the task was alive. */
static bool is_of_task(uint8_t kind)
{
	return kind == TDT_EVENT_POLL || kind == TDT_EVENT_WAKE || kind == TDT_EVENT_SPAWN ||
	       kind == TDT_EVENT_END || kind == TDT_EVENT_STACK || kind == TDT_EVENT_DELAY;
}

void tdt__summing_item(struct tdt__summing *summing, const struct tdt__recorded_item *item)
{
	struct tdt__track *track = &summing->track[item->thread];
	uint32_t number;

	summing->counts = item->ns >= summing->floor;
	if (item->event.kind == TDT_EVENT_PARK) {
		if (item->kind == TDT__RECORDED_BEGIN)
			tdt__summing_park(summing, track, item->ns);
		else
			tdt__summing_unpark(summing, track, item->ns);
		return;
	}
	if (!is_of_task(item->event.kind))
		return;
	number = tdt__recording_task(summing->recording, item->event.task);
	if (number == TDT__RECORDED_NONE)
		return;
	if (summing->counts) {
		summing->summary->tasks += !summing->tracked[number].counted;
		summing->tracked[number].counted = true;
	}
	if (item->remarkable)
		one_remarkable(summing, item, number);
	else
		one_of_task(summing, item, number);
}
