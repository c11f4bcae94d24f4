/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CLOCK_H
#define TDT_SRC_CLOCK_H

/*
 * The time now; and the stamp a poll takes: what the runtime told this turn (tdt_worker_now), else the coarse clock
 * (4 ms, some 7 ns).
 */

#include <stdint.h>
#include <time.h>

#include "thread.h"

static inline uint64_t tdt__clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t tdt__now(void)
{
	struct timespec now;

	if (tdt__thread.now != 0)
		return tdt__thread.now;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
