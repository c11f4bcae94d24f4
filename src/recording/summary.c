// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The summary of a recording, made in one pass over the steps of its tasks (timeline.h).
 *
 * For starvation two clocks run: one while any worker is parked, and one for each thread while this
 * thread is parked.  The difference of the two, from when a task became runnable to its poll, is
 * how long another worker was parked and the task's own thread was not.
 */

#include "recording/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "base/result.h"
#include "recording/summary_groups.h"
#include "recording/timeline.h"

/* Starvation, and without the header's thresholds polls and latencies, count from here on, ns. */
#define LEAST_LONG UINT64_C(1000000)

/* ---- What is known at some time ---- */

#define NO_THREAD UINT32_MAX
#define MANY_THREADS (UINT32_MAX - 1)

/* What is known of a task at some time, besides its phase. */
struct tracked {
	bool counted;	  /* in the summary's `tasks` */
	uint32_t threads; /* the thread that polls it; NO_THREAD or MANY_THREADS */
	/* Of the two clocks for starvation, when the task became runnable. */
	uint64_t any_parked, own_parked;
	uint64_t polls;
	uint64_t ns; /* in polls */
	double share;
	uint64_t starved, starved_total, starved_at, starved_ns;
	uint32_t behind;
};

enum { LONGEST_KEPT = 16 };

struct past_poll {
	uint32_t task;
	uint64_t begin, end;
};

/* What is known of a thread at some time. */
struct track {
	uint64_t start;			     /* from here on its polls are counted */
	uint64_t recorded;		     /* of the time since then */
	uint32_t depth;			     /* how many polls are going on, one within the other */
	struct tdt__recorded_item outermost; /* of these, its beginning */
	uint32_t task;			     /* which it polls */
	bool parked;
	uint64_t parked_ns; /* until `parked_since` */
	uint64_t parked_since;
	uint64_t polls;
	uint64_t polling_ns;
	uint32_t stack; /* found in the poll that is going on */
	/* The longest polls since some time, each shorter than the one before it. */
	struct past_poll longest[LONGEST_KEPT];
	size_t n_longest;
};

struct summing {
	struct tdt__summary *summary;
	const struct tdt__recording *recording;
	const struct tdt__timeline *timeline;
	const struct tdt__recorded_thread *thread;
	size_t n_tasks, n_threads, rows;
	uint64_t floor; /* what was before does not count */
	bool counts;	/* the item at hand is not before `floor` */
	uint64_t long_poll, long_wait;
	struct tracked *tracked;
	struct track *track;
	struct tdt__summary_groups groups;
	/* The clock that runs while any worker is parked. */
	size_t parked;
	uint64_t any_parked, any_since;
	bool failed;
};

/* ---- Lists that keep the worst entries ---- */

/* Sort an entry of `size` bytes, whose key is at `key_at`, into a list if it is among the worst. */
static void list_worst(void *entries, size_t *n, size_t *found, size_t rows, const void *entry,
		       size_t size, size_t key_at)
{
	char *bytes = entries;
	size_t at = *n;
	uint64_t key, other;

	memcpy(&key, (const char *)entry + key_at, sizeof(key));
	++*found;
	for (; at > 0; at--) {
		memcpy(&other, bytes + (at - 1) * size + key_at, sizeof(other));
		if (other >= key)
			break;
	}
	if (at >= rows)
		return;
	if (*n < rows)
		++*n;
	memmove(bytes + (at + 1) * size, bytes + at * size, (*n - at - 1) * size);
	memcpy(bytes + at * size, entry, size);
}

/* The same for a list of the summary: the entry, in braces, comes last. */
#define LIST_WORST(summing, list, key, ...)                                                        \
	do {                                                                                       \
		__typeof__((summing)->summary->list) *to = &(summing)->summary->list;              \
		__typeof__(*to->entry) worst = __VA_ARGS__;                                        \
		list_worst(to->entry, &to->n, &to->found, (summing)->rows, &worst, sizeof(worst),  \
			   offsetof(__typeof__(worst), key));                                      \
	} while (0)

/* ---- Time in which workers are parked ---- */

static uint64_t any_parked_by(const struct summing *summing, uint64_t now)
{
	if (summing->parked == 0)
		return summing->any_parked;
	return summing->any_parked +
	       tdt__recording_time(summing->recording, summing->any_since, now);
}

static uint64_t own_parked_by(const struct summing *summing, const struct track *track,
			      uint64_t now)
{
	if (!track->parked)
		return track->parked_ns;
	return track->parked_ns + tdt__recording_time(summing->recording, track->parked_since, now);
}

static void begin_parking(struct summing *summing, struct track *track, uint64_t now)
{
	if (track->parked)
		return;
	track->parked = true;
	track->parked_since = now > track->start ? now : track->start;
	if (summing->parked++ == 0)
		summing->any_since = now;
}

static void end_parking(struct summing *summing, struct track *track, uint64_t now)
{
	if (!track->parked)
		return;
	summing->any_parked = any_parked_by(summing, now);
	summing->any_since = now;
	summing->parked--;
	track->parked_ns = own_parked_by(summing, track, now);
	track->parked = false;
}

/* ---- Waits ---- */

static void add_wait(struct summing *summing, uint32_t number,
		     const struct tdt__timeline_task *task, const struct tdt__timeline_phase *wait,
		     bool going_on)
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
static uint32_t find_longest(const struct track *track, uint64_t since, uint64_t now)
{
	uint64_t longest = track->depth > 0 ? tdt__span(track->outermost.begin, now) : 0;

	for (size_t i = 0; i < track->n_longest; i++) {
		const struct past_poll *poll = &track->longest[i];

		if (poll->end > since)
			return tdt__span(poll->begin, poll->end) > longest ? poll->task
									   : track->task;
	}
	return track->depth > 0 ? track->task : TDT__NO_TASK;
}

static void measure_starving(struct summing *summing, struct tracked *task, uint64_t since,
			     uint64_t now)
{
	const struct track *track;
	uint64_t any, own;

	if (task->threads >= summing->n_threads)
		return;
	track = &summing->track[task->threads];
	any = any_parked_by(summing, now) - task->any_parked;
	own = own_parked_by(summing, track, now) - task->own_parked;
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

static void add_delay(struct summing *summing, uint32_t task, uint32_t thread, uint64_t at,
		      uint64_t ns, bool going_on)
{
	if (ns >= summing->long_wait && summing->counts)
		LIST_WORST(summing, delays, ns, { task, thread, at, ns, going_on });
}

static void begin_runnable(struct summing *summing, struct tracked *task, uint64_t now)
{
	task->any_parked = any_parked_by(summing, now);
	if (task->threads < summing->n_threads)
		task->own_parked = own_parked_by(summing, &summing->track[task->threads], now);
}

static void add_latency(struct summing *summing, const struct tdt__step *step)
{
	struct tracked *task = &summing->tracked[step->task];
	uint64_t since = step->before.since, ns = tdt__span(since, step->item.ns);
	uint32_t thread = step->item.thread;

	if (since < summing->floor)
		return;
	if (tdt__summary_groups_add_latency(&summing->groups, step->task, since, ns) != 0)
		summing->failed = true;
	add_delay(summing, step->task, summing->thread[thread].id, since, ns, false);
	if (task->threads == thread)
		measure_starving(summing, task, since, step->item.ns);
}

/* ---- Polls ---- */

static void list_poll(struct summing *summing, const struct tdt__recorded_item *item, uint32_t task,
		      uint64_t end, uint32_t stack)
{
	if (summing->counts)
		LIST_WORST(summing, slow, ns,
			   { .task = task,
			     .thread = summing->thread[item->thread].id,
			     .start = item->begin,
			     .ns = tdt__span(item->begin, end),
			     .woken_by = item->event.c,
			     .stack = stack,
			     .cpu = item->event.b,
			     .result = item->event.detail & 3,
			     .going_on = item->end == UINT64_MAX });
}

/*
 * Count a poll for its task and its thread, from when on these are counted.  `outermost`: it is not
 * within another poll.
 */
static void count_poll(struct summing *summing, const struct tdt__recorded_item *item,
		       uint32_t number, uint64_t end, bool outermost)
{
	struct tracked *task = &summing->tracked[number];
	struct track *track = &summing->track[item->thread];
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

/*
 * Add a run of a task of tdt_task_new(), or a poll that is known by a listing; `end` is UINT64_MAX
 * if it goes on.  Runs of several tasks may overlap: they are not of their thread's time in polls.
 */
static void add_run(struct summing *summing, uint32_t number, const struct tdt__timeline_task *task,
		    uint64_t end)
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
	list_poll(summing, &run, number, until, 0);
	count_poll(summing, &run, number, until, false);
}

static void poll_begins(struct summing *summing, const struct tdt__recorded_item *item,
			uint32_t number)
{
	struct tracked *task = &summing->tracked[number];
	struct track *track = &summing->track[item->thread];

	if (task->threads == NO_THREAD)
		task->threads = item->thread;
	else if (task->threads != item->thread)
		task->threads = MANY_THREADS;
	if (track->depth++ > 0)
		return;
	track->outermost = *item;
	track->task = number;
	track->stack = 0;
}

/* Keep the poll among the longest ones of its thread. */
static void keep_longest(struct track *track, uint32_t task, uint64_t begin, uint64_t end)
{
	size_t n = track->n_longest;

	while (n > 0 && tdt__span(track->longest[n - 1].begin, track->longest[n - 1].end) <=
			    tdt__span(begin, end))
		n--;
	if (n == LONGEST_KEPT)
		memmove(track->longest, track->longest + 1, --n * sizeof(track->longest[0]));
	track->longest[n] = (struct past_poll){ task, begin, end };
	track->n_longest = n + 1;
}

/* A poll that is only remarkable is not one of those that are counted. */
static void poll_ends(struct summing *summing, const struct tdt__recorded_item *item,
		      uint32_t number)
{
	struct track *track = &summing->track[item->thread];

	if (track->depth > 0)
		track->depth--;
	list_poll(summing, item, number, item->ns, track->task == number ? track->stack : 0);
	if (item->remarkable)
		return;
	count_poll(summing, item, number, item->ns, track->depth == 0);
	keep_longest(track, number, item->begin, item->ns);
}

/* ---- The other events ---- */

static void task_ended(struct summing *summing, const struct tdt__recorded_item *item,
		       uint32_t number)
{
	summing->summary->ended += summing->counts && !item->remarkable;
	if ((item->event.detail & 3) != TDT_PANICKED || !summing->counts)
		return;
	summing->summary->panicked++;
	LIST_WORST(summing, panics, at, { number, summing->thread[item->thread].id, item->ns });
}

/* A stack that the recorder found in a poll that was going on. */
static void found_stack(struct summing *summing, const struct tdt__recorded_item *item,
			uint32_t number)
{
	for (size_t i = 0; i < summing->n_threads; i++) {
		struct track *track = &summing->track[i];

		if (summing->thread[i].id == item->event.c && track->depth > 0 &&
		    track->task == number)
			track->stack = item->event.a;
	}
}

/* A latency that is sure is known from its wake-up and its poll. */
static void task_delayed(struct summing *summing, const struct tdt__recorded_item *item,
			 uint32_t number)
{
	uint64_t woken = tdt__span(item->event.c, item->ns);

	if (woken < summing->summary->whole)
		add_delay(summing, number, summing->thread[item->thread].id, woken, item->event.c,
			  false);
}

/* Returns whether the item is about the task, and says that the task was alive. */
static bool add_item(struct summing *summing, const struct tdt__recorded_item *item,
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
		LIST_WORST(summing, lost_wakeups, at, { number, item->event.c, item->ns });
		return true;
	default:
		return false;
	}
}

static void sum_step(struct summing *summing, const struct tdt__step *step)
{
	const struct tdt__recorded_item *item = &step->item;
	struct track *track = &summing->track[item->thread];
	struct tdt__timeline_phase over;
	uint32_t number = step->task;

	summing->counts = item->ns >= summing->floor;
	if (item->event.kind == TDT_EVENT_PARK) {
		if (item->kind == TDT__RECORDED_BEGIN)
			begin_parking(summing, track, item->ns);
		else
			end_parking(summing, track, item->ns);
		return;
	}
	if (tdt__step_ends_phase(step, &over) && over.phase == TDT__WAITING)
		add_wait(summing, number, &step->before, &over, false);
	if (tdt__step_ends_latency(step))
		add_latency(summing, step);
	if (item->event.kind == TDT_EVENT_RUN && tdt__step_ends(step, TDT__POLLING) &&
	    step->before.sure)
		add_run(summing, number, &step->before, item->ns);
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

/* ---- What is not over ---- */

/* The polls that are still going on, and the workers that are parked. */
static void end_tracks(struct summing *summing)
{
	for (size_t i = 0; i < summing->n_threads; i++) {
		struct track *track = &summing->track[i];

		end_parking(summing, track, summing->summary->end);
		if (track->depth == 0)
			continue;
		list_poll(summing, &track->outermost, track->task, summing->summary->end,
			  track->stack);
		count_poll(summing, &track->outermost, track->task, summing->summary->end, true);
	}
}

/* A task that waits, or is runnable and has not been polled yet. */
static void end_phase(struct summing *summing, uint32_t number,
		      const struct tdt__timeline_task *task)
{
	struct tdt__timeline_phase last = tdt__timeline_last(task);
	uint64_t now = summing->summary->end, since = task->since;

	if (last.until == 0)
		last.until = now;
	if (last.phase == TDT__WAITING)
		add_wait(summing, number, task, &last, true);
	if (task->phase == TDT__POLLING && task->sure && (task->polls == 0 || task->runs))
		add_run(summing, number, task, UINT64_MAX);
	if (task->phase != TDT__RUNNABLE || !task->sure || since < summing->floor)
		return;
	add_delay(summing, number, 0, since, tdt__span(since, now), true);
	measure_starving(summing, &summing->tracked[number], since, now);
}

/* ---- The lists ---- */

static void list_tasks(struct summing *summing, uint32_t number)
{
	const struct tracked *task = &summing->tracked[number];

	if (task->polls != 0)
		LIST_WORST(summing, busy, ns, { number, task->polls, task->ns, task->share });
	if (task->starved != 0 && task->threads < summing->n_threads)
		LIST_WORST(summing, starved, ns,
			   { .task = number,
			     .thread = summing->thread[task->threads].id,
			     .polls = task->polls,
			     .n = task->starved,
			     .total = task->starved_total,
			     .at = task->starved_at,
			     .ns = task->starved_ns,
			     .behind = task->behind });
}

static void list_thread(struct summing *summing, size_t i)
{
	const struct tdt__recorded_thread *thread = &summing->thread[i];
	const struct track *track = &summing->track[i];

	if (track->recorded != 0 && (track->polls != 0 || thread->worker))
		LIST_WORST(summing, workers, polling,
			   { .thread = thread->id,
			     .name = thread->name,
			     .start = track->start,
			     .recorded = track->recorded,
			     .polls = track->polls,
			     .polling = track->polling_ns,
			     .parked = track->parked_ns,
			     .task = track->depth != 0 ? track->task : TDT__NO_TASK,
			     .since = track->depth != 0 ? track->outermost.begin : 0 });
}

static void list_waits(struct summing *summing, struct tdt__summary_wait *wait)
{
	if (wait->n == 0)
		return;
	wait->owner = wait->what.owner != 0
			  ? tdt__recording_task(summing->recording, wait->what.owner)
			  : TDT__NO_TASK;
	wait->rank = wait->what.orphaned != 0 ? UINT64_MAX : wait->ns;
	if (tdt__is_lock_wait(&wait->what))
		LIST_WORST(summing, locks, rank, *wait);
	else
		LIST_WORST(summing, waits, rank, *wait);
}

static void sum_end(struct summing *summing)
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
		if (summing->groups.family[i].n != 0)
			LIST_WORST(summing, latency, most, summing->groups.family[i]);
}

/* ---- The pass ---- */

static int sum_up(struct summing *summing)
{
	struct tdt__timeline timeline;
	struct tdt__step step;
	int err = tdt__timeline_begin(&timeline, summing->recording);

	if (err != 0)
		return err;
	summing->timeline = &timeline;
	while (!summing->failed && tdt__timeline_next(&timeline, &step))
		sum_step(summing, &step);
	if (!summing->failed)
		sum_end(summing);
	tdt__timeline_end(&timeline);
	return summing->failed ? -ENOMEM : 0;
}

/* ---- Times ---- */

static void set_times(struct summing *summing, const struct tdt__summary_limits *limits)
{
	struct tdt__summary *summary = summing->summary;
	const struct tdt_recording *header = &summing->recording->header;

	summary->end = summing->recording->until;
	summary->whole = summing->recording->sure_from;
	summary->real = tdt__recording_real(summing->recording);
	summing->floor =
	    limits->since != 0 && limits->since < summary->end ? summary->end - limits->since : 0;
	summing->long_poll = header->long_poll != 0 ? header->long_poll : LEAST_LONG;
	summing->long_wait = header->long_wait != 0 ? header->long_wait : LEAST_LONG;
	summary->start = summary->end;
	for (size_t i = 0; i < summing->n_threads; i++) {
		uint64_t start = summing->thread[i].whole_from;
		struct track *track = &summing->track[i];

		track->start = start > summing->floor ? start : summing->floor;
		track->recorded =
		    tdt__recording_time(summing->recording, track->start, summary->end);
		if (track->start < summary->start)
			summary->start = track->start;
	}
}

/* ---- The whole ---- */

/* Do the same with each list. */
#define EACH_LIST(X)                                                                               \
	X(panics) X(lost_wakeups) X(slow) X(locks) X(waits) X(starved) X(delays) X(latency)        \
	X(busy) X(workers)

/* Make room for the lists, each of which has at most `rows` entries. */
static int make_lists(struct tdt__summary *summary, size_t rows)
{
	bool made = true;

#define MAKE_LIST(list)                                                                            \
	summary->list.entry = calloc(rows, sizeof(*summary->list.entry));                          \
	made = made && summary->list.entry != NULL;
	EACH_LIST(MAKE_LIST)
	return made ? 0 : -ENOMEM;
}

void tdt__summary_free(struct tdt__summary *summary)
{
	if (summary == NULL)
		return;
#define FREE_LIST(list) free(summary->list.entry);
	EACH_LIST(FREE_LIST)
	free(summary);
}

/* Make the state of each task and thread.  Returns 0 or -ENOMEM. */
static int begin_summing(struct summing *summing)
{
	summing->tracked = calloc(summing->n_tasks + 1, sizeof(*summing->tracked));
	summing->track = calloc(summing->n_threads + 1, sizeof(*summing->track));
	summing->groups.family_of =
	    calloc(summing->n_tasks + 1, sizeof(*summing->groups.family_of));
	if (summing->tracked == NULL || summing->track == NULL || summing->groups.family_of == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < summing->n_tasks; i++) {
		summing->tracked[i].threads = NO_THREAD;
		summing->tracked[i].behind = TDT__NO_TASK;
	}
	return 0;
}

static int make_summary(struct summing *summing, const struct tdt__summary_limits *limits)
{
	int err = begin_summing(summing);

	if (err == 0)
		err = make_lists(summing->summary, limits->rows);
	if (err != 0)
		return err;
	set_times(summing, limits);
	return sum_up(summing);
}

struct tdt__summary *tdt__summary_new(const struct tdt__recording *recording,
				      const struct tdt__summary_limits *limits)
{
	struct summing summing = { .recording = recording, .rows = limits->rows };
	int err;

	summing.summary = calloc(1, sizeof(*summing.summary));
	if (summing.summary == NULL)
		return NULL;
	summing.summary->recording = recording;
	summing.thread = recording->thread;
	summing.n_tasks = recording->n_tasks;
	summing.n_threads = recording->n_threads;
	summing.groups.task = recording->task;
	err = make_summary(&summing, limits);
	tdt__summary_groups_fini(&summing.groups);
	free(summing.groups.family_of);
	free(summing.track);
	free(summing.tracked);
	if (err == 0)
		return summing.summary;
	tdt__summary_free(summing.summary);
	return tdt__nothing(-ENOMEM);
}
