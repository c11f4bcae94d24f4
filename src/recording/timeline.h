/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_RECORDING_TIMELINE_H
#define TDT_SRC_RECORDING_TIMELINE_H

/*
 * What the items of a recording mean for the tasks: the phase in which each task is, and which
 * wake-up led to which poll.
 *
 *              wake            poll           poll ends
 *	WAITING ─────▶ RUNNABLE ─────▶ POLLING ──────────▶ WAITING, RUNNABLE or ENDED
 *
 * A task that was woken while it was polled is runnable afterwards.
 */

#include "recording/read.h"

enum tdt__phase {
	TDT__UNKNOWN = 0,
	TDT__SPAWNED = 1, /* neither polled nor woken yet */
	TDT__WAITING = 2,
	TDT__RUNNABLE = 3,
	TDT__POLLING = 4,
	TDT__ENDED = 5,
	TDT__PHASES = 6
};

/* What is known of a task at some time. */
struct tdt__timeline_task {
	enum tdt__phase phase;
	uint64_t since;	 /* ns */
	uint32_t thread; /* of the last poll; TDT__RECORDED_NONE: there was none */
	uint32_t polls;	 /* that go on; more than one only in a damaged recording */
	uint64_t wake;	 /* the number of the wake-up that the next poll, or the poll that
			    goes on, follows; 0: none, or unknown */
	uint64_t wake_ns;
	uint64_t next_wake; /* the number of a wake-up during the poll that goes on */
	uint64_t next_wake_ns;
	bool end_seen;
};

/* A step: an item, and what it changed. */
struct tdt__step {
	struct tdt__recorded_item item;
	uint32_t task; /* the number of the task that the item is about; TDT__RECORDED_NONE: none */
	struct tdt__timeline_task before, after;
	uint64_t wake; /* the number of a WAKE that made its task runnable, or, of the BEGIN of a
			  poll, of the wake-up that led to it; 0: none */
	bool migrated; /* of the BEGIN of a poll: the previous one was on another thread */
};

struct tdt__timeline {
	const struct tdt__recording *recording;
	struct tdt__recording_cursor cursor;
	struct tdt__timeline_task *task; /* as the recording's table of tasks */
	size_t n_tasks;
	uint64_t wakes; /* the number of the last one */
};

/* Returns 0 or -ENOMEM. */
int tdt__timeline_begin(struct tdt__timeline *timeline, const struct tdt__recording *recording);

/*
 * The next step.  After a step whose item is a STOP, all tasks that are not polled are
 * TDT__UNKNOWN, since the recorder saw no more of them; the step tells of none of these changes.
 */
bool tdt__timeline_next(struct tdt__timeline *timeline, struct tdt__step *step);

void tdt__timeline_end(struct tdt__timeline *timeline);

#endif
