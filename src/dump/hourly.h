/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* A limit: something may happen at most `most` times in any hour. */

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

#define TDT__HOURLY_MAX 60u
#define TDT__HOUR (3600 * (uint64_t)TDT__SECOND)

struct tdt__hourly {
	uint32_t most;                  /* at most TDT__HOURLY_MAX */
	uint32_t n;                     /* how often it has happened; the last times: */
	uint64_t time[TDT__HOURLY_MAX]; /* number i is at i % `most` */
};

/* Whether it may happen at the time `now`, in nanoseconds; if so, it is counted. */
static inline bool tdt__hourly_allows(struct tdt__hourly *hourly, uint64_t now)
{
	uint64_t *oldest = &hourly->time[hourly->n % hourly->most];

	if (hourly->n >= hourly->most && now - *oldest < TDT__HOUR)
		return false;
	*oldest = now;
	hourly->n++;
	return true;
}
