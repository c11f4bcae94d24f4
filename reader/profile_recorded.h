/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The times that the flight recorder has of the tasks, which are exact: how long the tasks of each
 * name were in each state, and for what they waited.  A recording has no places of waits.
 */

#include "reader/profile_sum.h"

struct tdt__recording;

struct tdt__profile_time {
	uint32_t name; /* its number in the sum */
	enum tdt__profile_state state;
	enum tdt_wait_kind kind;
	uint64_t ns;
	uint64_t n; /* how often a task was in this state, also in part */
};

struct tdt__profile_times {
	TDT__TABLE(struct tdt__profile_time, time, n); /* the longest first */
	uint64_t ns; /* of the time of the profile: so much is recorded without a gap */
};

/*
 * Add up the times from `from` to `until`, as far as the recording has them without a gap
 * (CLOCK_MONOTONIC of the process, nanoseconds).  Names get numbers in `sum`.  Returns 0, and the
 * caller frees the times; or -ENOMEM.
 */
int tdt__profile_times_read(struct tdt__profile_times *times, struct tdt__profile_sum *sum,
			    const struct tdt__recording *recording, uint64_t from, uint64_t until);
void tdt__profile_times_fini(struct tdt__profile_times *times);
