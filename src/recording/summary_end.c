// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The end of a recording: what is still going on then, and the lists of its summary. */

#include "recording/summing.h"

/* ---- What is not over ---- */

/* The polls that are still going on, and the workers that are parked. */
static void end_tracks(struct tdt__summing *summing)
{
	for (size_t i = 0; i < summing->n_threads; i++) {
		struct tdt__track *track = &summing->track[i];

		tdt__summing_unpark(summing, track, summing->summary->end);
		if (track->depth == 0)
			continue;
		tdt__summing_add_poll(summing, &track->outermost, track->task,
				      summing->summary->end, track->stack);
		tdt__summing_count_poll(summing, &track->outermost, track->task,
					summing->summary->end, true);
	}
}

/* A task that waits, or is runnable and has not been polled yet. */
static void end_phase(struct tdt__summing *summing, uint32_t number,
		      const struct tdt__timeline_task *task)
{
	struct tdt__timeline_phase last = tdt__timeline_last(task);
	uint64_t now = summing->summary->end, since = task->since;

	if (last.until == 0)
		last.until = now;
	if (last.phase == TDT__WAITING)
		tdt__summing_end_wait(summing, number, task, &last, true);
	if (task->phase == TDT__POLLING && task->sure && (task->polls == 0 || task->runs))
		tdt__summing_add_run(summing, number, task, UINT64_MAX);
	if (task->phase != TDT__RUNNABLE || !task->sure || since < summing->floor)
		return;
	tdt__summing_add_delay(summing, number, 0, since, tdt__span(since, now), true);
	tdt__summing_measure_starving(summing, &summing->tracked[number], since, now);
}

/* ---- The lists ---- */

static void list_tasks(struct tdt__summing *summing, uint32_t number)
{
	const struct tdt__tracked *task = &summing->tracked[number];
	struct tdt__summary_starved *starved;
	struct tdt__summary_busy *busy;

	if (task->polls != 0) {
		busy = TDT__INSERT(summing, summing->summary->busy, struct tdt__summary_busy, ns,
				   task->ns);
		if (busy != NULL)
			*busy = (struct tdt__summary_busy){ number, task->polls, task->ns,
							    task->share };
	}
	if (task->starved == 0 || task->threads >= summing->n_threads)
		return;
	starved = TDT__INSERT(summing, summing->summary->starved, struct tdt__summary_starved, ns,
			      task->starved_ns);
	if (starved != NULL)
		*starved = (struct tdt__summary_starved){
			.task = number,
			.thread = summing->thread[task->threads].id,
			.polls = task->polls,
			.n = task->starved,
			.total = task->starved_total,
			.at = task->starved_at,
			.ns = task->starved_ns,
			.behind = task->behind,
		};
}

static void list_thread(struct tdt__summing *summing, size_t i)
{
	const struct tdt__recorded_thread *thread = &summing->thread[i];
	const struct tdt__track *track = &summing->track[i];
	struct tdt__summary_worker *worker;

	if (track->recorded == 0 || (track->polls == 0 && !thread->worker))
		return;
	worker = TDT__INSERT(summing, summing->summary->workers, struct tdt__summary_worker,
			     polling, track->polling_ns);
	if (worker == NULL)
		return;
	*worker = (struct tdt__summary_worker){ .thread = thread->id,
						.name = thread->name,
						.start = track->start,
						.recorded = track->recorded,
						.polls = track->polls,
						.polling = track->polling_ns,
						.parked = track->parked_ns,
						.task = TDT__NO_TASK };
	if (track->depth == 0)
		return;
	worker->task = track->task;
	worker->since = track->outermost.begin;
}

static void list_waits(struct tdt__summing *summing, const struct tdt__summary_wait *wait)
{
	uint64_t rank = wait->what.orphaned != 0 ? UINT64_MAX : wait->ns;
	struct tdt__summary_wait *place;

	if (wait->n == 0)
		return;
	if (tdt__is_lock_wait(&wait->what))
		place = TDT__INSERT(summing, summing->summary->locks, struct tdt__summary_wait,
				    rank, rank);
	else
		place = TDT__INSERT(summing, summing->summary->waits, struct tdt__summary_wait,
				    rank, rank);
	if (place == NULL)
		return;
	*place = *wait;
	place->rank = rank;
	place->owner = wait->what.owner != 0
			   ? tdt__recording_task(summing->recording, wait->what.owner)
			   : TDT__NO_TASK;
}

static void list_family(struct tdt__summing *summing, const struct tdt__summary_latency *family)
{
	struct tdt__summary_latency *place;

	if (family->n == 0)
		return;
	place = TDT__INSERT(summing, summing->summary->latency, struct tdt__summary_latency, most,
			    family->most);
	if (place != NULL)
		*place = *family;
}

void tdt__summing_end(struct tdt__summing *summing)
{
	summing->counts = true;
	for (uint32_t i = 0; i < summing->n_tasks; i++)
		end_phase(summing, i, &summing->timeline->task[i]);
	end_tracks(summing);
	for (uint32_t i = 0; i < summing->n_tasks; i++)
		list_tasks(summing, i);
	for (size_t i = 0; i < summing->n_threads; i++)
		list_thread(summing, i);
	summing->failed |= tdt__summary_groups_find_quantiles(&summing->groups) != 0;
	for (uint32_t i = 0; i < summing->groups.n_waits; i++)
		list_waits(summing, &summing->groups.waits[i].wait);
	for (uint32_t i = 0; i < summing->groups.n_families; i++)
		list_family(summing, &summing->groups.family[i]);
}
