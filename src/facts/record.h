/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What a copy of a task's record says by itself, in the process of the task and outside of it. */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/counters.h>
#include <tdt/future.h>
#include <tdt/layout/registry.h>
#include <tdt/tree.h>

#include "facts/wait.h"

/* The bits of `own_hint`. */
#define TDT__HINT_CHILD 128u   /* the task is a part of its parent */
#define TDT__HINT_BLOCKING 64u /* the task is a call that may block */
#define TDT__HINT_FRAMES 63u   /* see tdt__frames_hint() */
#define TDT__REQUESTED_POLL 2u	 /* adds one to the count of requested polls in `own_bits` */
#define TDT__REQUESTED_POLLS 128 /* this many polls look like none */

/*
 * Whether a wake-up was reported since the poll number `polls` began, by `woken` and `woken_polls`
 * of the record.
 */
static inline bool tdt__woken_since(uint64_t woken, uint32_t woken_polls, uint64_t polls)
{
	return woken != 0 && woken_polls == (uint32_t)polls;
}

/* A bit of `own_request`: the task was aborted, by the task `woken_by`. */
#define TDT__RECORD_ABORTED 16u

static inline bool tdt__record_aborted(const struct tdt_task_record *record)
{
	return (__atomic_load_n(&record->own_request, __ATOMIC_RELAXED) & TDT__RECORD_ABORTED) != 0;
}

/* The state of the record's task; TDT_TASK_UNKNOWN: it has none. */
static inline enum tdt_task_state tdt__record_state(const struct tdt_task_record *record)
{
	switch (record->state) {
	case TDT_TASK_RECORD_POLLING:
		return TDT_TASK_RUNNING;
	case TDT_TASK_RECORD_ENDED:
		return record->outcome == TDT_READY ? TDT_TASK_READY : TDT_TASK_PANICKED;
	case TDT_TASK_RECORD_IDLE:
		return tdt__woken_since(record->woken, record->woken_polls, record->polls)
			   ? TDT_TASK_RUNNABLE
			   : TDT_TASK_WAITING;
	default:
		return TDT_TASK_UNKNOWN;
	}
}

/* Whether the task may still give back a lock that it holds: it, or the drop of its future. */
static inline bool tdt__record_may_hold(const struct tdt_task_record *record)
{
	return record->state == TDT_TASK_RECORD_IDLE || record->state == TDT_TASK_RECORD_POLLING ||
	       (record->state == TDT_TASK_RECORD_ENDED && record->stack_top != 0);
}

/* Whether the task was not polled, nor replaced by another one, between two copies of it. */
static inline bool tdt__record_stands(const struct tdt_task_record *record,
				      const struct tdt_task_record *later)
{
	return record->seq == later->seq && record->id == later->id &&
	       record->state == later->state && record->polls == later->polls;
}

/* Whether the record's wait is in date: a leaf reported it in the last poll that began. */
static inline bool tdt__record_has_wait(const struct tdt_task_record *record)
{
	return record->wait_count != 0 && record->wait_polls == (uint32_t)record->polls;
}

/* The wait, without its name. */
static inline struct tdt_wait tdt__wait_of_record(const struct tdt_task_record *record)
{
	if (!tdt__record_has_wait(record))
		return (struct tdt_wait){ .size = sizeof(struct tdt_wait) };
	return (struct tdt_wait){ .size = sizeof(struct tdt_wait),
				  .kind = tdt__wait_kind(record->wait_kind),
				  .object = record->wait_object,
				  .owner = record->wait_owner };
}

/* What is said of all tasks that nobody traces. */
#define TDT__NO_TREE "not traced: no tree"
#define TDT__UNTRACED TDT__NO_TREE "; tdt::spawn() or tdt_traced() gives one"

/* Whether there is no more to know of where the task is: a poll that goes on has a stack. */
static inline bool tdt__has_no_tree(const struct tdt_task_info *info)
{
	return info->untraced != 0 && info->state != TDT_TASK_RUNNING;
}

/* The only frame of a task that waits, and has neither a tree nor a list. */
static inline const char *tdt__unknown_frame(const struct tdt_task_record *record)
{
	return record->poll == TDT_TASK_RECORD_REPORTED ? "(" TDT__UNTRACED ")" : "(unknown)";
}

/* How many polls were made only for a request, and left the task waiting, modulo 128. */
static inline uint8_t tdt__requested_polls(const struct tdt_task_record *record)
{
	return record->own_bits / TDT__REQUESTED_POLL;
}

/* How many polls were made for other reasons, modulo 128. */
static inline uint8_t tdt__own_polls(const struct tdt_task_record *record)
{
	return (uint8_t)((record->polls - tdt__requested_polls(record)) % TDT__REQUESTED_POLLS);
}

static inline uint64_t tdt__time_since(uint64_t now, uint64_t then)
{
	return then != 0 && now > then ? now - then : 0;
}

/* Count a task that has been in `state` for `ns`. */
static inline void tdt__count_state(struct tdt_counts *counts, enum tdt_task_state state,
				    uint64_t ns)
{
	if (state == TDT_TASK_RUNNING) {
		counts->running++;
		if (ns > counts->longest_poll_ns)
			counts->longest_poll_ns = ns;
	} else if (state == TDT_TASK_RUNNABLE) {
		counts->runnable++;
	} else if (state == TDT_TASK_WAITING) {
		counts->waiting++;
		if (ns > counts->longest_wait_ns)
			counts->longest_wait_ns = ns;
	} else if (state != TDT_TASK_UNKNOWN) {
		counts->held++;
	}
}
