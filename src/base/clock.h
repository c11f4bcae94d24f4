/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The current time, in nanoseconds of CLOCK_MONOTONIC; and how many of them a second has. */

#include <stdint.h>
#include <time.h>

#define TDT__SECOND INT64_C(1000000000)

static inline uint64_t tdt__clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline uint64_t tdt__earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}
