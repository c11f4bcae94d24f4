/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What a task waits for, as the leaves of a poll have reported it, or a listing of live tasks. */

#include "facts/wait.h"
#include "recording/read.h"

struct tdt__recorded_waits {
	struct tdt_wait main; /* TDT_WAIT_UNKNOWN: no leaf reported a wait */
	uint32_t n;	      /* how many leaves did */
	uint32_t stack;	      /* of the first leaf that has one; 0: none has */
};

/* Read part `i` as a wait.  False: it is none. */
bool tdt__recorded_wait(const struct tdt__recording *recording,
			const struct tdt__recorded_parts *parts, uint32_t i, struct tdt_wait *wait);

void tdt__recorded_waits(const struct tdt__recording *recording,
			 const struct tdt__recorded_parts *parts,
			 struct tdt__recorded_waits *waits);

/*
 * Whether two polls, or a poll and a listing, report the same.  The lock that is waited for may
 * have been passed on in between.
 */
bool tdt__recorded_same_waits(const struct tdt__recording *recording,
			      const struct tdt__recorded_parts *a,
			      const struct tdt__recorded_parts *b);
