// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The phases of tasks, and the wake-ups that led to polls: see timeline.h. */

#include "recording/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/future.h>

#include "recording/recording.h"

const char *const tdt__phase_words[TDT__PHASES] = {
	[TDT__SPAWNED] = "spawned",
	[TDT__WAITING] = "waiting",
	[TDT__RUNNABLE] = "runnable",
	[TDT__POLLING] = "polling",
};

static void free_tables(struct tdt__timeline *timeline)
{
	free(timeline->task);
	free(timeline->lock);
}

int tdt__timeline_begin(struct tdt__timeline *timeline, const struct tdt__recording *recording)
{
	int err = 0;

	*timeline = (struct tdt__timeline){ .recording = recording,
					    .sure_from = recording->sure_from };
	timeline->forgotten = timeline->n_tasks = recording->n_tasks;
	timeline->task = calloc(timeline->n_tasks + 1, sizeof(*timeline->task));
	timeline->lock = calloc(recording->n_locks + 1, sizeof(*timeline->lock));
	if (timeline->task == NULL || timeline->lock == NULL)
		err = -ENOMEM;
	for (size_t i = 0; i < timeline->n_tasks && err == 0; i++)
		timeline->task[i].thread = TDT__RECORDED_NONE;
	if (err == 0)
		err = tdt__recording_begin(&timeline->cursor, recording);
	if (err != 0)
		free_tables(timeline);
	return err;
}

void tdt__timeline_end(struct tdt__timeline *timeline)
{
	tdt__recording_end(&timeline->cursor);
	free_tables(timeline);
}

/* The task comes to a phase.  `known`: what happened from then on would have changed it. */
static void enter(const struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		  enum tdt__phase phase, uint64_t ns, uint64_t known)
{
	if (task->phase == phase)
		return;
	task->phase = phase;
	task->waited = 0;
	task->since = ns;
	task->sure = phase != TDT__UNKNOWN && known >= timeline->sure_from;
}

/* --- Polls and wake-ups ------------------------------------------------------------- */

/* Only the first wake-up since the last poll began leads to a poll. */
static void wake(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		 struct tdt__step *step)
{
	uint64_t ns = step->item.ns, number = 0;

	if (task->phase >= TDT__RUNNABLE && (task->phase != TDT__POLLING || task->woken))
		return;
	if (ns >= timeline->sure_from)
		number = step->wake = ++timeline->wakes;
	if (task->phase == TDT__POLLING) {
		task->woken = true;
		task->next_wake = number;
	} else {
		task->wake = number;
		enter(timeline, task, TDT__RUNNABLE, ns, ns);
	}
}

/* Whether the poll was made for a request, and the task goes on waiting as before. */
static bool changes_nothing(const struct tdt__timeline *timeline,
			    const struct tdt__timeline_task *task,
			    const struct tdt__recorded_item *begin)
{
	return (begin->event.detail & (TDT_EVENT_POLL_REQUESTED | 3)) ==
		   (TDT_EVENT_POLL_REQUESTED | TDT_PENDING) &&
	       task->phase == TDT__WAITING && task->sure && !begin->remarkable &&
	       tdt__recorded_same_waits(timeline->recording, &task->parts, &begin->parts);
}

/* What the task waits for: a poll or a listing reports it. */
static void take_waits(struct tdt__timeline_task *task, const struct tdt__recorded_item *item)
{
	task->parts = item->parts;
	task->reported = item->ns;
	task->listed_lock = 0;
}

static void begin_poll(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		       struct tdt__step *step)
{
	const struct tdt__recorded_item *item = &step->item;

	task->passes = changes_nothing(timeline, task, item);
	take_waits(task, item);
	step->migrated = task->thread != TDT__RECORDED_NONE && task->thread != item->thread;
	task->thread = item->thread;
	if (task->passes)
		return;
	if (task->polls++ == 0) {
		step->wake = task->wake;
		task->woken = false;
		task->since = item->ns; /* a listing may have found the task in an earlier poll */
	}
	enter(timeline, task, TDT__POLLING, item->ns, item->ns);
	task->sure = true;
}

/* The phase behind a poll.  What followed a poll that only was remarkable is not known. */
static enum tdt__phase phase_after(const struct tdt__timeline_task *task,
				   const struct tdt__recorded_item *item)
{
	if ((item->event.detail & 3) != TDT_PENDING || task->end_seen)
		return TDT__ENDED;
	if (item->remarkable)
		return TDT__UNKNOWN;
	return task->woken ? TDT__RUNNABLE : TDT__WAITING;
}

/* A wake-up during the poll may be missing. */
static void end_poll(const struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		     const struct tdt__recorded_item *item)
{
	bool passed = task->passes;

	task->passes = false;
	if (passed || task->polls == 0 || --task->polls != 0)
		return;
	enter(timeline, task, phase_after(task, item), item->ns,
	      task->woken ? item->ns : task->since);
	task->wake = task->next_wake;
	task->next_wake = 0;
	task->woken = false;
}

/*
 * The beginning of a run may be in no event: then a wake-up during the run may be missing.  So may
 * be its end: then nothing but the beginning is known.
 */
static void run(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		struct tdt__step *step)
{
	bool ran = task->runs, begun = task->polls != 0;

	task->runs = step->item.event.detail != TDT_PENDING;
	if (task->runs && !ran) {
		begin_poll(timeline, task, step);
		task->sure = step->item.ns >= timeline->sure_from;
		task->polls -= !task->sure;
	} else if (!task->runs) {
		task->polls += !begun;
		end_poll(timeline, task, &step->item);
		task->sure &= begun;
	}
}

/* The id of a task that has ended may be that of a new one. */
static void spawn(const struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		  uint64_t ns)
{
	if (task->phase != TDT__UNKNOWN && task->phase != TDT__ENDED)
		return;
	*task = (struct tdt__timeline_task){ .thread = TDT__RECORDED_NONE };
	enter(timeline, task, TDT__SPAWNED, ns, ns);
}

static void leave_task(const struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		       uint64_t ns)
{
	task->end_seen = true;
	if (task->polls == 0)
		enter(timeline, task, TDT__ENDED, ns, ns);
}

/* --- Listings ----------------------------------------------------------------------- */

/* A listing found the task in a poll whose beginning is not recorded. */
static void list_polled(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
			const struct tdt__recorded_item *item, uint64_t since)
{
	task->thread = tdt__recording_find_thread(timeline->recording, item->event.a);
	task->parts.n = 0;
	task->wake = 0;
	task->woken = false;
	task->waited = 0;
	task->phase = TDT__POLLING;
	task->since = since;
}

/*
 * A listing says the same as events that are not sure: then it makes them sure.  So it does of a
 * wait that goes on since before the recorder was stopped.  Otherwise the events that led to what
 * it says are missing.  Its time does not tell: the clock of records is late by a tick of the
 * kernel, in which a task may have been polled again.
 */
static void list_waiting(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
			 const struct tdt__recorded_item *item, enum tdt__phase phase,
			 uint64_t since)
{
	bool same = tdt__recorded_same_waits(timeline->recording, &task->parts, &item->parts);

	if (task->phase == phase && task->since >= since) {
		if (same)
			return;
		since = task->since;
	}
	if (!same)
		take_waits(task, item);
	else if (phase == TDT__WAITING && since <= task->waited)
		since = task->waited;
	task->wake = 0;
	task->waited = 0;
	task->phase = phase;
	task->since = since;
}

static void apply_listing(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
			  const struct tdt__recorded_item *item)
{
	const struct tdt_event *event = &item->event;
	struct tdt__listed_state listed;
	uint64_t since;

	if (task->polls != 0 || task->phase == TDT__ENDED ||
	    !tdt__recorded_listed(timeline->recording, item, &listed))
		return;
	if (event->b == TDT_STATE_IDLE && event->detail == TDT_WAIT_MUTEX) {
		task->listed_lock = listed.object;
		task->listed_holder = (struct tdt__timeline_holder){ listed.owner, item->ns };
		task->listed_orphan = listed.orphaned != 0;
	}
	if (task->sure && task->phase != TDT__POLLING)
		return;
	since = event->b == TDT_STATE_WOKEN ? listed.woken : event->c;
	if (since > item->ns)
		since = item->ns;
	if (event->b == TDT_STATE_POLLED)
		list_polled(timeline, task, item, since);
	else
		list_waiting(timeline, task, item,
			     event->b == TDT_STATE_WOKEN ? TDT__RUNNABLE : TDT__WAITING, since);
	task->sure = item->ns >= timeline->sure_from;
}

/* --- Locks -------------------------------------------------------------------------- */

static void hand(struct tdt__timeline *timeline, const struct tdt__recorded_item *item)
{
	uint32_t number = tdt__recording_lock(timeline->recording, item->event.c);
	struct tdt__timeline_lock *lock;

	if (number == TDT__RECORDED_NONE)
		return;
	lock = &timeline->lock[number];
	lock->before = lock->last;
	lock->last = (struct tdt__timeline_holder){ item->event.task, item->ns };
}

/* A lock that is handed to the task itself was another task's as long as the task waited. */
void tdt__timeline_renew(const struct tdt__timeline *timeline, uint32_t number,
			 const struct tdt__timeline_task *task, struct tdt_wait *wait)
{
	uint32_t at = wait->kind == TDT_WAIT_MUTEX
			  ? tdt__recording_lock(timeline->recording, wait->object)
			  : TDT__RECORDED_NONE;
	struct tdt__timeline_holder known = { wait->owner, task->reported };

	bool listed = task->listed_lock != 0 && task->listed_lock == wait->object;

	if (listed)
		known = task->listed_holder;
	if (at != TDT__RECORDED_NONE) {
		const struct tdt__timeline_lock *lock = &timeline->lock[at];
		bool own = lock->last.task == timeline->recording->task[number].id;
		const struct tdt__timeline_holder *handed = own ? &lock->before : &lock->last;

		if (handed->ns > known.ns)
			known = *handed;
	}
	wait->owner = known.task;
	wait->orphaned = listed && task->listed_orphan && known.task == task->listed_holder.task;
}

/* --- Steps -------------------------------------------------------------------------- */

static void apply(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		  struct tdt__step *step)
{
	switch (step->item.event.kind) {
	case TDT_EVENT_POLL:
		if (step->item.kind == TDT__RECORDED_BEGIN)
			begin_poll(timeline, task, step);
		else
			end_poll(timeline, task, &step->item);
		break;
	case TDT_EVENT_WAKE:
		wake(timeline, task, step);
		break;
	case TDT_EVENT_RUN:
		run(timeline, task, step);
		break;
	case TDT_EVENT_SPAWN:
		spawn(timeline, task, step->item.ns);
		break;
	case TDT_EVENT_END:
		leave_task(timeline, task, step->item.ns);
		break;
	case TDT_EVENT_STATE:
		apply_listing(timeline, task, &step->item);
		break;
	default:
		break;
	}
}

/* Whether the item is about the task that it names, and not only from inside its poll. */
static bool is_about_task(const struct tdt_event *event)
{
	return event->kind == TDT_EVENT_POLL || event->kind == TDT_EVENT_WAKE ||
	       event->kind == TDT_EVENT_SPAWN || event->kind == TDT_EVENT_END ||
	       event->kind == TDT_EVENT_STATE || event->kind == TDT_EVENT_RUN;
}

/* The recorder was stopped, or goes on after a stop: tasks move that are not recorded. */
static void note_mark(struct tdt__timeline *timeline, const struct tdt__recorded_item *item)
{
	if (item->event.kind != TDT_EVENT_STOP && !timeline->stopped)
		return;
	timeline->stopped = item->event.kind == TDT_EVENT_STOP;
	timeline->mark = *item;
	timeline->forgotten = 0;
	if (item->ns > timeline->sure_from)
		timeline->sure_from = item->ns;
}

/* Forget the next task whose phase is not known behind the mark.  False: there is none. */
static bool forget_next(struct tdt__timeline *timeline, struct tdt__step *step)
{
	for (; timeline->forgotten < timeline->n_tasks; timeline->forgotten++) {
		struct tdt__timeline_task *task = &timeline->task[timeline->forgotten];

		task->wake = 0;
		if (task->runs) /* a poll is recorded when it ends; of a run, its end is missing */
			task->polls = 0;
		task->runs = false;
		if (task->polls != 0 || task->phase == TDT__ENDED || task->phase == TDT__UNKNOWN)
			continue;
		step->item = timeline->mark;
		step->task = (uint32_t)timeline->forgotten++;
		step->before = *task;
		enter(timeline, task, TDT__UNKNOWN, step->item.ns, 0);
		if (step->before.phase == TDT__WAITING && step->before.sure)
			task->waited = step->before.since;
		step->after = task;
		return true;
	}
	return false;
}

bool tdt__timeline_next(struct tdt__timeline *timeline, struct tdt__step *step)
{
	const struct tdt_event *event = &step->item.event;

	step->task = TDT__RECORDED_NONE;
	step->wake = 0;
	step->migrated = false;
	if (__builtin_expect(timeline->forgotten < timeline->n_tasks, 0) &&
	    forget_next(timeline, step))
		return true;
	if (!tdt__recording_next(&timeline->cursor, &step->item))
		return false;
	if (event->kind == TDT_EVENT_STOP || event->kind == TDT_EVENT_START)
		note_mark(timeline, &step->item);
	if (event->kind == TDT_EVENT_LOCK)
		hand(timeline, &step->item);
	if (is_about_task(event))
		step->task = tdt__recording_task(timeline->recording, event->task);
	if (step->task != TDT__RECORDED_NONE) {
		struct tdt__timeline_task *task = &timeline->task[step->task];

		step->before = *task;
		apply(timeline, task, step);
		step->after = task;
	}
	return true;
}

/* --- Phases that are over --------------------------------------------------------- */

struct tdt__timeline_phase tdt__timeline_last(const struct tdt__timeline_task *task)
{
	if (task->phase == TDT__UNKNOWN && task->waited != 0)
		return (struct tdt__timeline_phase){ TDT__WAITING, true, task->waited,
						     task->since };
	return (struct tdt__timeline_phase){ task->phase, task->sure, task->since, 0 };
}

bool tdt__step_ends_phase(const struct tdt__step *step, struct tdt__timeline_phase *over)
{
	const struct tdt__timeline_task *after = step->after;
	uint64_t until = step->item.ns;

	if (step->task == TDT__RECORDED_NONE)
		return false;
	*over = tdt__timeline_last(&step->before);
	if ((over->phase == after->phase && over->since == after->since) ||
	    (after->phase == TDT__UNKNOWN && after->waited != 0))
		return false;
	if (over->until != 0)
		return true;
	if (after->since < until) /* a listing says so later */
		until = after->since;
	over->until = until > over->since ? until : over->since;
	return true;
}
