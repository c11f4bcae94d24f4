/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * How long the polls of a recording took, and how long woken tasks waited for their polls, counted
 * by duration; and the waits of its tasks.  Several recordings may be counted one after the other,
 * each from the time on at which the one before ended.
 */

#include <stdint.h>

#include <tdt/tree.h>

struct tdt__recorded_task;
struct tdt__recording;

#define TDT__DURATION_BOUNDS 15

/* The upper bounds of all buckets but the last one, in nanoseconds. */
extern const uint64_t tdt__duration_bound[TDT__DURATION_BOUNDS];

struct tdt__durations {
	uint64_t n[TDT__DURATION_BOUNDS + 1]; /* of each bucket alone; the last has no bound */
	uint64_t sum;                         /* of all durations, in nanoseconds */
};

void tdt__durations_add(struct tdt__durations *durations, uint64_t ns);

/* A span of time, in nanoseconds of CLOCK_MONOTONIC: what happens at `from` is not in it. */
struct tdt__recorded_span {
	uint64_t from, until;
};

/* Called for a wait: which task waited, for what kind of object, and for how long. */
typedef void tdt__waited_fn(void *arg, const struct tdt__recorded_task *task,
			    enum tdt_wait_kind kind, uint64_t ns);

struct tdt__recorded_durations {
	struct tdt__durations *polls, *latencies;
	tdt__waited_fn *waited; /* NULL: the waits are not wanted */
	void *arg;
};

/*
 * Add the polls that ended in the span, and the latencies and the waits that ended in it
 * (timeline.h).  Latencies and waits are left out if events may be missing that were recorded
 * before, and waits also if they go on.  Returns 0 or -ENOMEM.
 */
int tdt__durations_count(const struct tdt__recording *recording,
			 const struct tdt__recorded_span *span,
			 const struct tdt__recorded_durations *to);
