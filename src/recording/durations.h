/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * How long the polls of a recording took, and how long woken tasks waited for their polls, counted
 * by duration.  Several recordings may be counted one after the other, each from the time on at
 * which the one before ended.
 */

#include <stdint.h>

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

/*
 * Add the polls that ended in the span, and the latencies that ended in it (timeline.h).  A latency
 * is left out if events may be missing that were recorded before the wake-up.  Returns 0 or
 * -ENOMEM.
 */
int tdt__durations_count(const struct tdt__recording *recording,
			 const struct tdt__recorded_span *span, struct tdt__durations *polls,
			 struct tdt__durations *latencies);
