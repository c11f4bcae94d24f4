// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What the items of a recording and its end have in common: the lists that keep the worst entries,
 * the clocks of parked time, and what is added when a wait, a latency or a poll is over.
 *
 * For starvation two clocks run: one while any worker is parked, and one for each thread while this
 * thread is parked.  The difference of the two, from when a task became runnable to its poll, is
 * how long another worker was parked and the task's own thread was not.
 */

#include "recording/summing.h"

#include <string.h>

#include <tdt/future.h>

/* ---- Lists that keep the worst entries ---- */

void *tdt__summing_insert(void *entries, size_t *n, size_t *found, size_t rows, size_t size,
			  size_t key_at, uint64_t key)
{
	char *bytes = entries;
	size_t at = *n;
	uint64_t other;

	++*found;
	for (; at > 0; at--) {
		memcpy(&other, bytes + (at - 1) * size + key_at, sizeof(other));
		if (other >= key)
			break;
	}
	if (at >= rows)
		return NULL;
	if (*n < rows)
		++*n;
	memmove(bytes + (at + 1) * size, bytes + at * size, (*n - at - 1) * size);
	return bytes + at * size;
}

/* ---- Time in which workers are parked ---- */

uint64_t tdt__summing_any_parked(const struct tdt__summing *summing, uint64_t now)
{
	if (summing->parked == 0)
		return summing->any_parked;
	return summing->any_parked +
	       tdt__recording_time(summing->recording, summing->any_since, now);
}

uint64_t tdt__summing_own_parked(const struct tdt__summing *summing, const struct tdt__track *track,
				 uint64_t now)
{
	if (!track->parked)
		return track->parked_ns;
	return track->parked_ns + tdt__recording_time(summing->recording, track->parked_since, now);
}

void tdt__summing_park(struct tdt__summing *summing, struct tdt__track *track, uint64_t now)
{
	if (track->parked)
		return;
	track->parked = true;
	track->parked_since = now > track->start ? now : track->start;
	if (summing->parked++ == 0)
		summing->any_since = now;
}

void tdt__summing_unpark(struct tdt__summing *summing, struct tdt__track *track, uint64_t now)
{
	if (!track->parked)
		return;
	summing->any_parked = tdt__summing_any_parked(summing, now);
	summing->any_since = now;
	summing->parked--;
	track->parked_ns = tdt__summing_own_parked(summing, track, now);
	track->parked = false;
}

/* ---- Waits ---- */

void tdt__summing_end_wait(struct tdt__summing *summing, uint32_t number,
			   const struct tdt__timeline_task *task,
			   const struct tdt__timeline_phase *wait, bool going_on)
{
	struct tdt__recorded_waits waits;
	uint32_t group;

	if (!wait->sure || wait->since < summing->floor)
		return;
	tdt__recorded_waits(summing->recording, &task->parts, &waits);
	tdt__timeline_renew(summing->timeline, number, task, &waits.main);
	group = tdt__summary_groups_wait(&summing->groups, number, &waits.main, waits.stack);
	if (group == TDT__NO_GROUP)
		summing->failed = true;
	else
		tdt__summary_groups_add_wait(&summing->groups, group, number, waits.stack,
					     wait->since, tdt__span(wait->since, wait->until),
					     going_on);
}

/* ---- Runnable tasks ---- */

/* The task that the thread polled for longest, of the polls that ended after `since`. */
static uint32_t find_longest(const struct tdt__track *track, uint64_t since, uint64_t now)
{
	uint64_t longest = track->depth > 0 ? tdt__span(track->outermost.begin, now) : 0;

	for (size_t i = 0; i < track->n_longest; i++) {
		const struct tdt__past_poll *poll = &track->longest[i];

		if (poll->end > since)
			return tdt__span(poll->begin, poll->end) > longest ? poll->task
									   : track->task;
	}
	return track->depth > 0 ? track->task : TDT__NO_TASK;
}

void tdt__summing_measure_starving(struct tdt__summing *summing, struct tdt__tracked *task,
				   uint64_t since, uint64_t now)
{
	const struct tdt__track *track;
	uint64_t any, own;

	if (task->threads >= summing->n_threads)
		return;
	track = &summing->track[task->threads];
	any = tdt__summing_any_parked(summing, now) - task->any_parked;
	own = tdt__summing_own_parked(summing, track, now) - task->own_parked;
	if (any < own || any - own < summing->long_poll)
		return;
	task->starved++;
	task->starved_total += any - own;
	if (any - own <= task->starved_ns)
		return;
	task->starved_ns = any - own;
	task->starved_at = since;
	task->behind = find_longest(track, since, now);
}

void tdt__summing_add_delay(struct tdt__summing *summing, uint32_t task, uint32_t thread,
			    uint64_t at, uint64_t ns, bool going_on)
{
	struct tdt__summary_delay *delay;

	if (ns < summing->long_wait || !summing->counts)
		return;
	delay = TDT__INSERT(summing, summing->summary->delays, struct tdt__summary_delay, ns, ns);
	if (delay != NULL)
		*delay = (struct tdt__summary_delay){
			.task = task, .thread = thread, .at = at, .ns = ns, .going_on = going_on
		};
}

/* ---- Polls ---- */

void tdt__summing_add_poll(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			   uint32_t task, uint64_t end, uint32_t stack)
{
	struct tdt__summary_poll *poll;

	if (!summing->counts)
		return;
	poll = TDT__INSERT(summing, summing->summary->slow, struct tdt__summary_poll, ns,
			   tdt__span(item->begin, end));
	if (poll == NULL)
		return;
	*poll = (struct tdt__summary_poll){ .task = task,
					    .thread = summing->thread[item->thread].id,
					    .start = item->begin,
					    .ns = tdt__span(item->begin, end),
					    .woken_by = item->event.c,
					    .stack = stack,
					    .cpu = item->event.b,
					    .result = item->event.detail & 3,
					    .going_on = item->end == UINT64_MAX };
}

void tdt__summing_count_poll(struct tdt__summing *summing, const struct tdt__recorded_item *item,
			     uint32_t number, uint64_t end, bool outermost)
{
	struct tdt__tracked *task = &summing->tracked[number];
	struct tdt__track *track = &summing->track[item->thread];
	uint64_t begin = item->begin > track->start ? item->begin : track->start, ns;

	summing->summary->polls += summing->counts;
	task->polls += summing->counts;
	track->polls += summing->counts;
	if (end > summing->summary->end)
		end = summing->summary->end;
	if (end <= begin)
		return;
	ns = tdt__recording_time(summing->recording, begin, end);
	task->ns += ns;
	if (track->recorded != 0)
		task->share += (double)ns / (double)track->recorded;
	if (outermost)
		track->polling_ns += ns;
}

/* Runs of several tasks may overlap: they are not of their thread's time in polls. */
void tdt__summing_add_run(struct tdt__summing *summing, uint32_t number,
			  const struct tdt__timeline_task *task, uint64_t end)
{
	const struct tdt__recorded_item run = {
		.event = { .b = UINT16_MAX, .detail = TDT_PENDING },
		.begin = task->since,
		.end = end,
		.thread = task->thread,
	};
	uint64_t until = end != UINT64_MAX ? end : summing->summary->end;

	if (task->thread >= summing->n_threads)
		return;
	tdt__summing_add_poll(summing, &run, number, until, 0);
	tdt__summing_count_poll(summing, &run, number, until, false);
}
