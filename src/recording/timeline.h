/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What the items of a recording mean for the tasks: the phase in which each task is, since when,
 * what it waits for, whether this is sure, and which wake-up led to which poll.  Nobody else
 * follows the items: the summary, durations, profiles, lists of the last states, and traces read
 * the steps.
 *
 *              wake            poll           poll ends
 *	WAITING ─────▶ RUNNABLE ─────▶ POLLING ──────────▶ WAITING, RUNNABLE or ENDED
 *
 * A task that was woken while it was polled is runnable afterwards.  A poll that was made for a
 * request is no step of a task that goes on waiting for the same.  Where events are missing, a
 * listing of live tasks (STATE) says what the events do not.  While the recorder is stopped, the
 * phase of no task is known that is not polled.
 */

#include "recording/read.h"
#include "recording/waits.h"

enum tdt__phase {
	TDT__UNKNOWN = 0,
	TDT__SPAWNED = 1, /* neither polled nor woken yet */
	TDT__WAITING = 2,
	TDT__RUNNABLE = 3,
	TDT__POLLING = 4,
	TDT__ENDED = 5,
	TDT__PHASES = 6
};

/* "spawned", "waiting", "runnable", "polling"; of the others NULL. */
extern const char *const tdt__phase_words[TDT__PHASES];

/* Who has a lock since when, as far as it is known. */
struct tdt__timeline_holder {
	uint64_t task, ns;
};

/* A lock that was handed to tasks: to the last one, and to the one before. */
struct tdt__timeline_lock {
	struct tdt__timeline_holder last, before;
};

/* What is known of a task at some time. */
struct tdt__timeline_task {
	enum tdt__phase phase;
	bool sure;   /* no event is missing that may have ended the phase, or begun it */
	bool woken;  /* during the poll that goes on */
	bool passes; /* a poll goes on that is no step */
	bool runs;   /* the poll that goes on is a run of a task of tdt_task_new() */
	bool end_seen;
	uint64_t since;	 /* ns */
	uint32_t thread; /* of the last poll; TDT__RECORDED_NONE: there was none */
	uint32_t polls;	 /* that go on; more than one only in a damaged recording */
	struct tdt__recorded_parts parts; /* of the last poll, or of a listing (waits.h) */
	uint64_t reported;		  /* when; ns */
	uint64_t listed_lock; /* that the task waits for, by a listing since; 0: there was none */
	struct tdt__timeline_holder listed_holder;
	bool listed_orphan; /* the holder had ended then, and cannot give it back */
	uint64_t waited; /* in TDT__UNKNOWN: it waited since then when the recorder was stopped,
			    and may go on with that; ns.  0: otherwise */
	uint64_t wake;	 /* the number of the wake-up that the next poll, or the poll that
			    goes on, follows; 0: none, or unknown */
	uint64_t next_wake; /* the same of the poll behind the one that goes on */
};

/* A step: an item, and what it changed. */
struct tdt__step {
	struct tdt__recorded_item item;
	uint32_t task; /* the number of the task that the item is about; TDT__RECORDED_NONE: none */
	uint64_t wake; /* the number of a WAKE that made its task runnable, or, of the BEGIN of a
			  poll, of the wake-up that led to it; 0: none, or not sure */
	bool migrated; /* of the BEGIN of a poll: the previous one was on another thread */
	/* What is known of the task, and was.  Not set if there is no task. */
	struct tdt__timeline_task before;
	const struct tdt__timeline_task *after; /* valid until the next step */
};

struct tdt__timeline {
	const struct tdt__recording *recording;
	struct tdt__recording_cursor cursor;
	struct tdt__timeline_task *task; /* as the recording's table of tasks */
	size_t n_tasks;
	struct tdt__timeline_lock *lock; /* as the recording's table of locks */
	uint64_t sure_from; /* what began before is not sure */
	uint64_t wakes;	    /* the number of the last one */
	/* Private. */
	bool stopped;
	size_t forgotten; /* so many tasks are forgotten of those that `mark` makes unknown */
	struct tdt__recorded_item mark;
};

/* Returns 0 or -ENOMEM. */
int tdt__timeline_begin(struct tdt__timeline *timeline, const struct tdt__recording *recording);

/*
 * The next step.  The step of a STOP is followed by one for each task whose phase is unknown from
 * then on: it has the same item.
 */
bool tdt__timeline_next(struct tdt__timeline *timeline, struct tdt__step *step);

void tdt__timeline_end(struct tdt__timeline *timeline);

/*
 * Have `wait`, of what task number `number` waited for, name the holder that was known last. `task`
 * is what is known of the task now, or was before the last step.
 */
void tdt__timeline_renew(const struct tdt__timeline *timeline, uint32_t number,
			 const struct tdt__timeline_task *task, struct tdt_wait *wait);

/* A phase of a task, which is over. */
struct tdt__timeline_phase {
	enum tdt__phase phase;
	bool sure;
	uint64_t since, until;
};

/*
 * Whether the step ends a phase of its task.  A wait goes on over a pause of the recorder, unless
 * what follows says that it does not: then it is known to have lasted until the pause.
 */
bool tdt__step_ends_phase(const struct tdt__step *step, struct tdt__timeline_phase *over);

/*
 * The phase of a task that goes on when there are no more steps.  `until` is 0, or when the
 * recorder was stopped while the task waited.
 */
struct tdt__timeline_phase tdt__timeline_last(const struct tdt__timeline_task *task);

/* From `begin` to `end`; in a damaged recording `end` may come first. */
static inline uint64_t tdt__span(uint64_t begin, uint64_t end)
{
	return end > begin ? end - begin : 0;
}

/* Whether the step ends a phase of its task, from `before.since` to the item's time. */
static inline bool tdt__step_ends(const struct tdt__step *step, enum tdt__phase phase)
{
	return step->task != TDT__RECORDED_NONE && step->before.phase == phase &&
	       (step->after->phase != phase || step->after->since != step->before.since);
}

/*
 * Whether the step ends a *latency*: from the first wake-up since the previous poll began, or from
 * the end of that poll if this is later, to the next poll.
 */
static inline bool tdt__step_ends_latency(const struct tdt__step *step)
{
	return tdt__step_ends(step, TDT__RUNNABLE) && step->after->phase == TDT__POLLING &&
	       step->before.sure;
}
