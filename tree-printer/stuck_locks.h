/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The futurelocks and the orphaned locks of a snapshot, which its tasks' waits tell. */

#include <stdbool.h>
#include <stddef.h>

#include <tdt/dump.h>

struct tdt__stuck_lock {
	struct tdt_wait wait; /* of the first task that waits for the lock */
	size_t waits;         /* how many leaves wait for it */
};

/* Futurelocks come first.  They are sorted by the owner's id, then by the lock's address. */
struct tdt__stuck_locks {
	struct tdt__stuck_lock *lock; /* the caller frees it */
	size_t n;
};

/* Whether a lock that the task waits for is in a futurelock, or is orphaned. */
bool tdt__waits_in_vain(const struct tdt_task_info *info);

struct tdt__string;
struct tdt__names;

/* Write the line that describes it. */
void tdt__stuck_lock_line(struct tdt__string *string, const struct tdt__stuck_lock *lock,
			  const struct tdt__names *names);

/* How many are orphaned: the last ones. */
size_t tdt__stuck_orphans(const struct tdt__stuck_locks *locks);

/* Returns 0 or -ENOMEM. */
int tdt__stuck_locks_collect(struct tdt__stuck_locks *locks, const struct tdt_snapshot *snapshot);
