// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The summary of a recording, made in one pass over its items in the order of time.
 *
 * Each task has a state, which the items change.  A task is waiting or runnable only between two
 * polls that were both recorded, and while it is being polled, neither:
 *
 *	             wake-up              poll begins
 *	  waiting ───────────▶ runnable ──────────────▶ polling
 *	     ▲                     ▲  woken meanwhile      │
 *	     └──── returned ───────┴───── pending ─────────┘
 *
 * For starvation two clocks run: one while any worker is parked, and one for each thread while this
 * thread is parked.  The difference of the two, from when a task became runnable to its poll, is
 * how long another worker was parked and the task's own thread was not.
 */

#include <config.h>

#include "recording/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#include "recording/read.h"
#include "recording/summary_groups.h"

#define NO_THREAD UINT32_MAX
#define MANY_THREADS (UINT32_MAX - 1)

/* Starvation, and without the header's thresholds polls and latencies, count from here on, ns. */
#define LEAST_LONG UINT64_C(1000000)

enum activity {
	ELSEWHERE = 0, /* the state is unknown, or the task has ended */
	WAITING,
	RUNNABLE,
	POLLING
};

/* What is known of a task at some time. */
struct tracked {
	enum activity activity;
	bool counted;      /* in the summary's `tasks` */
	bool woken;        /* during the poll */
	uint64_t since;    /* when the task came to wait, or became runnable */
	uint32_t group;    /* what it waits for, if it is waiting */
	uint32_t stack;    /* where; 0: unknown */
	uint32_t threads;  /* the thread that polls it; NO_THREAD or MANY_THREADS */
	/* Of the two clocks for starvation, when the task became runnable. */
	uint64_t any_parked, own_parked;
	uint64_t polls;
	uint64_t ns; /* in polls */
	double share;
	uint64_t starved, starved_total, starved_at, starved_ns;
	uint32_t behind;
};

enum {
	LONGEST_KEPT = 16
};

/* A poll that is over. */
struct past_poll {
	uint32_t task;
	uint64_t begin, end;
};

/* What is known of a thread at some time. */
struct track {
	uint64_t start;     /* from here on its polls are counted */
	uint32_t depth;     /* how many polls are going on, one within the other */
	struct tdt__recorded_item outermost; /* of these, its beginning */
	uint32_t task;      /* which it polls */
	bool parked;
	uint64_t parked_ns; /* until `parked_since` */
	uint64_t parked_since;
	uint64_t polls;
	uint64_t polling_ns;
	uint32_t stack;     /* found in the poll that is going on */
	/* The longest polls since some time, each shorter than the one before it. */
	struct past_poll longest[LONGEST_KEPT];
	size_t n_longest;
};

/* While the summary is made. */
struct summing {
	struct tdt__summary *summary;
	const struct tdt__recording *recording;
	const struct tdt__recorded_task *task;
	const struct tdt__recorded_thread *thread;
	size_t n_tasks, n_threads, rows;
	uint64_t floor;      /* what was before does not count */
	uint64_t from;       /* the same for waits and latencies */
	bool counts;         /* the item at hand is not before `floor` */
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

/*
 * Make room in a sorted list of at most `rows` entries of `size` bytes, whose keys are at offset
 * `key_at`.  Returns the new entry; NULL: it is not among the worst.
 */
static void *insert(void *entries, size_t *n, size_t *found, size_t rows, size_t size,
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

#define INSERT(summing, list, type, key, value)						\
	(type *)insert((list).entry, &(list).n, &(list).found, (summing)->rows, sizeof(type), \
		       offsetof(type, key), value)

/* From `begin` to `end`; in a damaged recording `end` may come first. */
static uint64_t span(uint64_t begin, uint64_t end)
{
	return end > begin ? end - begin : 0;
}

/* ---- Time in which workers are parked ---- */

static uint64_t any_parked(const struct summing *summing, uint64_t now)
{
	return summing->any_parked + (summing->parked > 0 ? span(summing->any_since, now) : 0);
}

static uint64_t own_parked(const struct track *track, uint64_t now)
{
	return track->parked_ns + (track->parked ? span(track->parked_since, now) : 0);
}

static void park(struct summing *summing, struct track *track, uint64_t now)
{
	if (track->parked)
		return;
	track->parked = true;
	track->parked_since = now;
	if (summing->parked++ == 0)
		summing->any_since = now;
}

static void unpark(struct summing *summing, struct track *track, uint64_t now)
{
	if (!track->parked)
		return;
	summing->any_parked = any_parked(summing, now);
	summing->any_since = now;
	summing->parked--;
	track->parked_ns = own_parked(track, now);
	track->parked = false;
}

/* ---- Waits ---- */

/* The task has stopped waiting, or the recording has ended. */
static void end_wait(struct summing *summing, uint32_t number, uint64_t now, bool going_on)
{
	struct tracked *task = &summing->tracked[number];

	if (task->activity == WAITING && task->since >= summing->from &&
	    task->group != TDT__NO_GROUP)
		tdt__summary_groups_add_wait(&summing->groups, task->group, number, task->stack,
					     task->since, span(task->since, now), going_on);
}

/* What the leaves of a poll wait for: a lock if there is one, else the first report. */
static void read_wait(struct summing *summing, const struct tdt__recorded_item *begin,
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

static void begin_runnable(struct summing *summing, uint32_t number, uint64_t now)
{
	struct tracked *task = &summing->tracked[number];

	task->activity = RUNNABLE;
	task->since = now;
	task->any_parked = any_parked(summing, now);
	if (task->threads < summing->n_threads)
		task->own_parked = own_parked(&summing->track[task->threads], now);
}

/* The task that the thread polled for longest, of the polls that ended after `since`. */
static uint32_t find_longest(const struct track *track, uint64_t since, uint64_t now)
{
	uint64_t longest = track->depth > 0 ? span(track->outermost.begin, now) : 0;

	for (size_t i = 0; i < track->n_longest; i++) {
		const struct past_poll *poll = &track->longest[i];

		if (poll->end > since)
			return span(poll->begin, poll->end) > longest ? poll->task : track->task;
	}
	return track->depth > 0 ? track->task : TDT__NO_TASK;
}

/* The task is polled now, on its thread as ever, or the recording ends. */
static void measure_starving(struct summing *summing, struct tracked *task, uint64_t now)
{
	const struct track *track;
	uint64_t any, own;

	if (task->threads >= summing->n_threads)
		return;
	track = &summing->track[task->threads];
	any = any_parked(summing, now) - task->any_parked;
	own = own_parked(track, now) - task->own_parked;
	if (any < own || any - own < summing->long_poll)
		return;
	task->starved++;
	task->starved_total += any - own;
	if (any - own <= task->starved_ns)
		return;
	task->starved_ns = any - own;
	task->starved_at = task->since;
	task->behind = find_longest(track, task->since, now);
}

static void add_delay(struct summing *summing, uint32_t task, uint32_t thread, uint64_t at,
		      uint64_t ns, bool going_on)
{
	struct tdt__summary_delay *delay;

	if (ns < summing->long_wait || !summing->counts)
		return;
	delay = INSERT(summing, summing->summary->delays, struct tdt__summary_delay, ns, ns);
	if (delay != NULL)
		*delay = (struct tdt__summary_delay){ .task = task,
						      .thread = thread,
						      .at = at,
						      .ns = ns,
						      .going_on = going_on };
}

static void end_runnable(struct summing *summing, uint32_t number, uint32_t thread, uint64_t now)
{
	struct tracked *task = &summing->tracked[number];

	if (task->activity != RUNNABLE || task->since < summing->from)
		return;
	if (tdt__summary_groups_add_latency(&summing->groups, number, task->since,
				    span(task->since, now)) != 0)
		summing->failed = true;
	add_delay(summing, number, summing->thread[thread].id, task->since,
		  span(task->since, now), false);
	if (task->threads == thread)
		measure_starving(summing, task, now);
}

/* ---- Polls ---- */

static void add_poll(struct summing *summing, const struct tdt__recorded_item *item, uint32_t task,
		     uint64_t end, uint32_t stack)
{
	struct tdt__summary_poll *poll;

	if (!summing->counts)
		return;
	poll = INSERT(summing, summing->summary->slow, struct tdt__summary_poll, ns,
		      span(item->begin, end));
	if (poll == NULL)
		return;
	*poll = (struct tdt__summary_poll){ .task = task,
					    .thread = summing->thread[item->thread].id,
					    .start = item->begin,
					    .ns = span(item->begin, end),
					    .woken_by = item->event.c,
					    .stack = stack,
					    .cpu = item->event.b,
					    .result = item->event.detail & 3,
					    .going_on = item->end == UINT64_MAX };
}

static void poll_begins(struct summing *summing, const struct tdt__recorded_item *item,
		       uint32_t number)
{
	struct tracked *task = &summing->tracked[number];
	struct track *track = &summing->track[item->thread];
	struct tdt_wait wait;

	end_wait(summing, number, item->ns, false);
	end_runnable(summing, number, item->thread, item->ns);
	read_wait(summing, item, &wait, &task->stack);
	task->group = tdt__summary_groups_wait(&summing->groups, number, &wait, task->stack);
	summing->failed |= task->group == TDT__NO_GROUP;
	task->activity = POLLING;
	task->woken = false;
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

	while (n > 0 && span(track->longest[n - 1].begin, track->longest[n - 1].end) <=
			span(begin, end))
		n--;
	if (n == LONGEST_KEPT)
		memmove(track->longest, track->longest + 1, --n * sizeof(track->longest[0]));
	track->longest[n] = (struct past_poll){ task, begin, end };
	track->n_longest = n + 1;
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
	uint64_t begin = item->begin > track->start ? item->begin : track->start;

	summing->summary->polls += summing->counts;
	task->polls += summing->counts;
	track->polls += summing->counts;
	if (end > summing->summary->end)
		end = summing->summary->end;
	if (end <= begin)
		return;
	task->ns += end - begin;
	task->share += (double)(end - begin) / (double)(summing->summary->end - track->start);
	if (outermost)
		track->polling_ns += end - begin;
}

static void poll_ends(struct summing *summing, const struct tdt__recorded_item *item,
		     uint32_t number)
{
	struct tracked *task = &summing->tracked[number];
	struct track *track = &summing->track[item->thread];

	if (track->depth > 0)
		track->depth--;
	add_poll(summing, item, number, item->ns, track->task == number ? track->stack : 0);
	count_poll(summing, item, number, item->ns, track->depth == 0);
	keep_longest(track, number, item->begin, item->ns);
	task->activity = ELSEWHERE;
	if ((item->event.detail & 3) != TDT_PENDING)
		return;
	if (task->woken) {
		begin_runnable(summing, number, item->ns);
	} else {
		task->activity = WAITING;
		task->since = item->ns;
	}
}

/* ---- The other events ---- */

static void task_woken(struct summing *summing, uint32_t number, uint64_t now)
{
	struct tracked *task = &summing->tracked[number];

	summing->summary->wakes += summing->counts;
	end_wait(summing, number, now, false);
	if (task->activity == POLLING)
		task->woken = true;
	else if (task->activity != RUNNABLE)
		begin_runnable(summing, number, now);
}

static void task_ended(struct summing *summing, const struct tdt__recorded_item *item,
		     uint32_t number)
{
	struct tdt__summary_panic *panic;

	summing->summary->ended += summing->counts && !item->remarkable;
	if (summing->tracked[number].activity == WAITING)
		end_wait(summing, number, item->ns, false);
	if (summing->tracked[number].activity != POLLING)
		summing->tracked[number].activity = ELSEWHERE;
	if (item->event.detail != TDT_PANICKED || !summing->counts)
		return;
	summing->summary->panicked++;
	panic = INSERT(summing, summing->summary->panics, struct tdt__summary_panic, at, item->ns);
	if (panic != NULL)
		*panic = (struct tdt__summary_panic){ number, summing->thread[item->thread].id,
						      item->ns };
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

static void one_of_task(struct summing *summing, const struct tdt__recorded_item *item,
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
static void one_remarkable(struct summing *summing, const struct tdt__recorded_item *item,
			   uint32_t number)
{
	uint64_t woken = span(item->event.c, item->ns);

	if (item->event.kind == TDT_EVENT_POLL && item->kind == TDT__RECORDED_END)
		add_poll(summing, item, number, item->ns, 0);
	else if (item->event.kind == TDT_EVENT_END)
		task_ended(summing, item, number);
	else if (item->event.kind == TDT_EVENT_DELAY && woken < summing->summary->whole)
		add_delay(summing, number, summing->thread[item->thread].id, woken, item->event.c,
			  false);
}

/* Whether an event is about a task, and says that the task was alive. */
static bool is_of_task(uint8_t kind)
{
	return kind == TDT_EVENT_POLL || kind == TDT_EVENT_WAKE || kind == TDT_EVENT_SPAWN ||
	       kind == TDT_EVENT_END || kind == TDT_EVENT_STACK || kind == TDT_EVENT_DELAY;
}

static void one_item(struct summing *summing, const struct tdt__recorded_item *item)
{
	struct track *track = &summing->track[item->thread];
	uint32_t number;

	summing->counts = item->ns >= summing->floor;
	if (item->event.kind == TDT_EVENT_PARK) {
		if (item->kind == TDT__RECORDED_BEGIN)
			park(summing, track, item->ns);
		else
			unpark(summing, track, item->ns);
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

/* ---- The end ---- */

/* The polls that are still going on, and the workers that are parked. */
static void end_tracks(struct summing *summing)
{
	for (size_t i = 0; i < summing->n_threads; i++) {
		struct track *track = &summing->track[i];

		unpark(summing, track, summing->summary->end);
		if (track->depth == 0)
			continue;
		add_poll(summing, &track->outermost, track->task, summing->summary->end,
			 track->stack);
		count_poll(summing, &track->outermost, track->task, summing->summary->end, true);
	}
}

/* A task that is runnable, and has not been polled yet. */
static void end_late(struct summing *summing, uint32_t number)
{
	struct tracked *task = &summing->tracked[number];
	uint64_t now = summing->summary->end;

	if (task->activity != RUNNABLE || task->since < summing->from)
		return;
	add_delay(summing, number, 0, task->since, span(task->since, now), true);
	measure_starving(summing, task, now);
}

static void list_tasks(struct summing *summing, uint32_t number)
{
	const struct tracked *task = &summing->tracked[number];
	struct tdt__summary_starved *starved;
	struct tdt__summary_busy *busy;

	if (task->polls != 0) {
		busy = INSERT(summing, summing->summary->busy, struct tdt__summary_busy, ns,
			      task->ns);
		if (busy != NULL)
			*busy = (struct tdt__summary_busy){ number, task->polls, task->ns,
							    task->share };
	}
	if (task->starved == 0 || task->threads >= summing->n_threads)
		return;
	starved = INSERT(summing, summing->summary->starved, struct tdt__summary_starved, ns,
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

static void list_thread(struct summing *summing, size_t i)
{
	const struct tdt__recorded_thread *thread = &summing->thread[i];
	const struct track *track = &summing->track[i];
	struct tdt__summary_worker *worker;

	if (track->start >= summing->summary->end || (track->polls == 0 && !thread->worker))
		return;
	worker = INSERT(summing, summing->summary->workers, struct tdt__summary_worker, polling,
			track->polling_ns);
	if (worker == NULL)
		return;
	*worker = (struct tdt__summary_worker){ .thread = thread->id,
						.name = thread->name,
						.start = track->start,
						.end = summing->summary->end,
						.polls = track->polls,
						.polling = track->polling_ns,
						.parked = track->parked_ns,
						.task = TDT__NO_TASK };
	if (track->depth == 0)
		return;
	worker->task = track->task;
	worker->since = track->outermost.begin;
}

static void list_waits(struct summing *summing, const struct tdt__summary_wait *wait)
{
	struct tdt__summary_wait *place;

	if (wait->n == 0)
		return;
	if (tdt__is_lock_wait(&wait->what))
		place = INSERT(summing, summing->summary->locks, struct tdt__summary_wait, ns,
			       wait->ns);
	else
		place = INSERT(summing, summing->summary->waits, struct tdt__summary_wait, ns,
			       wait->ns);
	if (place == NULL)
		return;
	*place = *wait;
	place->owner = wait->what.owner != 0
			   ? tdt__recording_task(summing->recording, wait->what.owner)
			   : TDT__NO_TASK;
}

static void list_family(struct summing *summing, const struct tdt__summary_latency *family)
{
	struct tdt__summary_latency *place;

	if (family->n == 0)
		return;
	place = INSERT(summing, summing->summary->latency, struct tdt__summary_latency, most,
		       family->most);
	if (place != NULL)
		*place = *family;
}

static void end_summing(struct summing *summing)
{
	summing->counts = true;
	for (uint32_t i = 0; i < summing->n_tasks; i++) {
		end_wait(summing, i, summing->summary->end, true);
		end_late(summing, i);
	}
	end_tracks(summing);
	for (uint32_t i = 0; i < summing->n_tasks; i++)
		list_tasks(summing, i);
	for (size_t i = 0; i < summing->n_threads; i++)
		list_thread(summing, i);
	tdt__summary_groups_find_quantiles(&summing->groups);
	for (uint32_t i = 0; i < summing->groups.n_waits; i++)
		list_waits(summing, &summing->groups.waits[i].wait);
	for (uint32_t i = 0; i < summing->groups.n_families; i++)
		list_family(summing, &summing->groups.family[i]);
}

/* ---- The whole ---- */

/* Pass over all items.  Returns 0 or -ENOMEM. */
static int sum_up(struct summing *summing)
{
	struct tdt__recording_cursor cursor;
	struct tdt__recorded_item item;
	int err = tdt__recording_begin(&cursor, summing->recording);

	if (err != 0)
		return err;
	while (!summing->failed && tdt__recording_next(&cursor, &item))
		one_item(summing, &item);
	tdt__recording_end(&cursor);
	if (summing->failed)
		return -ENOMEM;
	end_summing(summing);
	return 0;
}

/* From when on no event of a thread that polls was overwritten. */
static uint64_t whole_from(const struct tdt__recording *recording)
{
	size_t n;
	const struct tdt__recorded_ring *ring = tdt__recording_rings(recording, &n);
	uint64_t from = 0;

	for (; n > 0; n--, ring++)
		if (ring->kind == TDT_RING_POLLS && ring->lost > 0 && ring->from > from)
			from = ring->from;
	return from;
}

static void set_times(struct summing *summing, const struct tdt__summary_limits *limits)
{
	struct tdt__summary *summary = summing->summary;
	const struct tdt_recording *header = tdt__recording_header(summing->recording);

	summary->end = tdt__recording_until(summing->recording);
	summary->whole = whole_from(summing->recording);
	summary->real = tdt__recording_real(summing->recording);
	summing->floor = limits->since != 0 && limits->since < summary->end
			     ? summary->end - limits->since
			     : 0;
	summing->from = summary->whole > summing->floor ? summary->whole : summing->floor;
	summing->long_poll = header->long_poll != 0 ? header->long_poll : LEAST_LONG;
	summing->long_wait = header->long_wait != 0 ? header->long_wait : LEAST_LONG;
	summary->start = summary->end;
	for (size_t i = 0; i < summing->n_threads; i++) {
		uint64_t start = summing->thread[i].whole_from;

		summing->track[i].start = start > summing->floor ? start : summing->floor;
		if (summing->track[i].start < summary->start)
			summary->start = summing->track[i].start;
	}
}

/* Make room for the lists, each of which has at most `rows` entries. */
static int make_lists(struct tdt__summary *summary, size_t rows)
{
	summary->panics.entry = calloc(rows, sizeof(*summary->panics.entry));
	summary->slow.entry = calloc(rows, sizeof(*summary->slow.entry));
	summary->locks.entry = calloc(rows, sizeof(*summary->locks.entry));
	summary->waits.entry = calloc(rows, sizeof(*summary->waits.entry));
	summary->starved.entry = calloc(rows, sizeof(*summary->starved.entry));
	summary->delays.entry = calloc(rows, sizeof(*summary->delays.entry));
	summary->latency.entry = calloc(rows, sizeof(*summary->latency.entry));
	summary->busy.entry = calloc(rows, sizeof(*summary->busy.entry));
	summary->workers.entry = calloc(rows, sizeof(*summary->workers.entry));
	return summary->panics.entry != NULL && summary->slow.entry != NULL &&
		       summary->locks.entry != NULL && summary->waits.entry != NULL &&
		       summary->starved.entry != NULL && summary->delays.entry != NULL &&
		       summary->latency.entry != NULL && summary->busy.entry != NULL &&
		       summary->workers.entry != NULL
		   ? 0
		   : -ENOMEM;
}

void tdt__summary_free(struct tdt__summary *summary)
{
	if (summary == NULL)
		return;
	free(summary->panics.entry);
	free(summary->slow.entry);
	free(summary->locks.entry);
	free(summary->waits.entry);
	free(summary->starved.entry);
	free(summary->delays.entry);
	free(summary->latency.entry);
	free(summary->busy.entry);
	free(summary->workers.entry);
	free(summary);
}

/* Make the state of each task and thread.  Returns 0 or -ENOMEM. */
static int begin_summing(struct summing *summing)
{
	summing->tracked = calloc(summing->n_tasks + 1, sizeof(*summing->tracked));
	summing->track = calloc(summing->n_threads + 1, sizeof(*summing->track));
	summing->groups.family_of =
	    calloc(summing->n_tasks + 1, sizeof(*summing->groups.family_of));
	if (summing->tracked == NULL || summing->track == NULL ||
	    summing->groups.family_of == NULL)
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
	summing.task = tdt__recording_tasks(recording, &summing.n_tasks);
	summing.thread = tdt__recording_threads(recording, &summing.n_threads);
	summing.groups.task = summing.task;
	err = make_summary(&summing, limits);
	tdt__summary_groups_fini(&summing.groups);
	free(summing.groups.family_of);
	free(summing.track);
	free(summing.tracked);
	if (err == 0)
		return summing.summary;
	tdt__summary_free(summing.summary);
	errno = ENOMEM;
	return NULL;
}
