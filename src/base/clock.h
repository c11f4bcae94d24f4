/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The current time in nanoseconds, mostly of CLOCK_MONOTONIC; and how many of them a second has. */

#include <stdint.h>
#include <time.h>

#define TDT__SECOND INT64_C(1000000000)

static inline uint64_t tdt__clock_of(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * (uint64_t)TDT__SECOND + (uint64_t)now.tv_nsec;
}

static inline uint64_t tdt__clock(void)
{
	return tdt__clock_of(CLOCK_MONOTONIC);
}

/* A time, or a length of time, for system calls. */
static inline struct timespec tdt__timespec(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / (uint64_t)TDT__SECOND),
				  (long)(ns % (uint64_t)TDT__SECOND) };
}

static inline uint64_t tdt__earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
