/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_BASE_CLOCK_H
#define TDT_SRC_BASE_CLOCK_H

/* The current time, in nanoseconds of CLOCK_MONOTONIC. */

#include <stdint.h>
#include <time.h>

static inline uint64_t tdt__clock(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
