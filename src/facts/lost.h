/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What the lost wake-ups of a registry say (struct tdt_registry_lost), in the process and outside
 * of it.  task/lost.h says how they are found.
 *
 * One of them may be an accident: whoever brings an event may take the waker from its place later,
 * and find none, since the task went on between the two.  It is certain if it happened again at the
 * same place, both times after a second at least.  A place is known only of a task that was
 * watched.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/registry.h>
#include <tdt/tree.h>

#include "base/clock.h"

/* For qsort(3), of notes of any kind: the last one comes first. */
int tdt__by_note_number(const void *a, const void *b);

/* Whether one that was noted at `when` can no longer be taken back. */
static inline bool tdt__lost_is_sure(uint64_t when, uint64_t now)
{
	return now > when && now - when >= TDT__SECOND;
}

/* Those that count, in `lost`, the last one first. */
struct tdt__losts {
	struct tdt_registry_lost *lost; /* the caller frees it; NULL: there are none */
	size_t n;
	size_t n_unsure;                /* others, which may still be taken back */
	uint64_t total;                 /* so many since the start */
	uint64_t sure_at;               /* when all that were noted by now will be sure; 0: now */
};

/*
 * Leave the `n` notes that were read into `losts->lost`, in any order, if they count.  `counted` is
 * the sum of the registry's counters.
 */
void tdt__losts_judge(struct tdt__losts *losts, size_t n, uint64_t counted, uint64_t now);

/*
 * What one says of its task: it waits, for `state_ns`; `age_ns` ago it went on; `lost_times` is how
 * often that happened at this place.  `wait` and `waits` get what it waited for.
 */
struct tdt_task_info tdt__lost_info(const struct tdt__losts *losts, size_t i, const char *file,
				    uint64_t now, struct tdt_wait *wait,
				    const struct tdt_wait *waits[1]);
