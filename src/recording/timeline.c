// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The phases of tasks, and the wake-ups that led to polls: see timeline.h. */

#include <config.h>

#include "recording/timeline.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/future.h>

int tdt__timeline_begin(struct tdt__timeline *timeline, const struct tdt__recording *recording)
{
	int err;

	*timeline = (struct tdt__timeline){ .recording = recording };
	tdt__recording_tasks(recording, &timeline->n_tasks);
	timeline->task = calloc(timeline->n_tasks + 1, sizeof(*timeline->task));
	if (timeline->task == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < timeline->n_tasks; i++)
		timeline->task[i].thread = TDT__RECORDED_NONE;
	err = tdt__recording_begin(&timeline->cursor, recording);
	if (err != 0)
		free(timeline->task);
	return err;
}

void tdt__timeline_end(struct tdt__timeline *timeline)
{
	tdt__recording_end(&timeline->cursor);
	free(timeline->task);
}

static void enter(struct tdt__timeline_task *task, enum tdt__phase phase, uint64_t ns)
{
	if (task->phase == phase)
		return;
	task->phase = phase;
	task->since = ns;
}

/* Only the first wake-up since the last poll began leads to a poll. */
static void wake(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		 struct tdt__step *step)
{
	uint64_t ns = step->item.ns;

	if (task->phase == TDT__POLLING && task->next_wake == 0) {
		task->next_wake = step->wake = ++timeline->wakes;
		task->next_wake_ns = ns;
	} else if (task->phase < TDT__RUNNABLE) {
		task->wake = step->wake = ++timeline->wakes;
		task->wake_ns = ns;
		enter(task, TDT__RUNNABLE, ns);
	}
}

static void begin_poll(struct tdt__timeline_task *task, struct tdt__step *step)
{
	if (task->polls++ == 0)
		step->wake = task->wake;
	step->migrated = task->thread != TDT__RECORDED_NONE && task->thread != step->item.thread;
	task->thread = step->item.thread;
	enter(task, TDT__POLLING, step->item.ns);
}

/* The phase behind a poll.  What followed a poll that only was remarkable is not known. */
static enum tdt__phase phase_after(const struct tdt__timeline_task *task,
				   const struct tdt__recorded_item *item)
{
	if ((item->event.detail & 3) != TDT_PENDING || task->end_seen)
		return TDT__ENDED;
	if (item->remarkable)
		return TDT__UNKNOWN;
	return task->next_wake != 0 ? TDT__RUNNABLE : TDT__WAITING;
}

static void end_poll(struct tdt__timeline_task *task, const struct tdt__step *step)
{
	if (task->polls == 0 || --task->polls != 0)
		return;
	enter(task, phase_after(task, &step->item), step->item.ns);
	task->wake = task->next_wake;
	task->wake_ns = task->next_wake_ns;
	task->next_wake = 0;
}

static void leave_task(struct tdt__timeline_task *task, uint64_t ns)
{
	task->end_seen = true;
	if (task->polls == 0)
		enter(task, TDT__ENDED, ns);
}

static void apply(struct tdt__timeline *timeline, struct tdt__timeline_task *task,
		  struct tdt__step *step)
{
	switch (step->item.event.kind) {
	case TDT_EVENT_POLL:
		if (step->item.kind == TDT__RECORDED_BEGIN)
			begin_poll(task, step);
		else
			end_poll(task, step);
		break;
	case TDT_EVENT_WAKE:
		wake(timeline, task, step);
		break;
	case TDT_EVENT_SPAWN:
		if (task->phase == TDT__UNKNOWN)
			enter(task, TDT__SPAWNED, step->item.ns);
		break;
	case TDT_EVENT_END:
		leave_task(task, step->item.ns);
		break;
	default:
		break;
	}
}

static void forget_tasks(struct tdt__timeline *timeline, uint64_t ns)
{
	for (size_t i = 0; i < timeline->n_tasks; i++) {
		struct tdt__timeline_task *task = &timeline->task[i];

		task->wake = 0;
		if (task->polls == 0 && task->phase != TDT__ENDED)
			enter(task, TDT__UNKNOWN, ns);
	}
}

/* Whether the item is about the task that it names, and not only from inside its poll. */
static bool is_about_task(const struct tdt_event *event)
{
	return event->kind == TDT_EVENT_POLL || event->kind == TDT_EVENT_WAKE ||
	       event->kind == TDT_EVENT_SPAWN || event->kind == TDT_EVENT_END;
}

bool tdt__timeline_next(struct tdt__timeline *timeline, struct tdt__step *step)
{
	const struct tdt_event *event = &step->item.event;

	*step = (struct tdt__step){ .task = TDT__RECORDED_NONE };
	if (!tdt__recording_next(&timeline->cursor, &step->item))
		return false;
	if (event->kind == TDT_EVENT_STOP)
		forget_tasks(timeline, step->item.ns);
	if (is_about_task(event))
		step->task = tdt__recording_task(timeline->recording, event->task);
	if (step->task != TDT__RECORDED_NONE) {
		struct tdt__timeline_task *task = &timeline->task[step->task];

		step->before = *task;
		apply(timeline, task, step);
		step->after = *task;
	}
	return true;
}
