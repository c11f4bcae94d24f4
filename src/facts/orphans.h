/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Orphaned locks: their owner has ended and has not given them back, so that all tasks that wait
 * for them hang; in this process, in another one, or in a core file.
 *
 * The order of the looks makes it certain.  A wait names the owner; then the owner is looked for,
 * and is not among the tasks that may still give the lock back; then the lock is read again, and
 * still names that owner.  Ids are not used twice, so nobody else can be meant.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/tree.h>

#include "tree/futurelocks.h"

struct tdt__orphan {
	struct tdt_wait wait; /* of the first task that waits for the lock */
	const struct tdt_wait *waits[1];
	uint64_t taken_at;    /* as in struct tdt_lock */
	struct tdt_registry_holder owner; /* `id` is 0: nothing is known of it */
};

struct tdt__orphans {
	struct tdt__orphan *lock; /* the caller frees it; NULL: there are none, or no memory */
	size_t n;
};

/*
 * Set `orphaned` of each wait of a member for such a lock, and list the locks.  Without memory none
 * is found.
 */
void tdt__orphans_find(struct tdt__lock_places *places, struct tdt__orphans *orphans);

/*
 * The lock of `wait`, which is read now, if its owner, which has been found to be gone, can never
 * give it back; else NULL.
 */
const struct tdt_lock *tdt__orphaned_lock(struct tdt__lock_places *places,
					  const struct tdt_wait *wait);

/* What is known of the owner, with the lock as its only wait, which is borrowed. */
struct tdt_task_info tdt__orphan_info(struct tdt__orphan *orphan);
