// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Locks that were handed to a task which has not taken them. */

#include "tree/futurelocks.h"

#include <string.h>

#include "base/index.h"
#include "tree/findings.h"
#include "tree/waits.h"

/*
 * A lock notes the time before it wakes the task, and its thread may be interrupted in between.  So
 * a poll counts only if it began that long after that time.
 */
#define WOKEN_WITHIN UINT64_C(100000000)

/* Read the beginning of a lock as it was at one moment.  False: there is no such lock. */
static bool read_anew(const struct tdt__lock_places *places, uint64_t address,
		      struct tdt_lock *lock)
{
	struct tdt_lock again;

	return places->read(places->arg, address, lock, sizeof *lock) &&
	       memcmp(lock->magic, TDT_LOCK_MAGIC, sizeof lock->magic) == 0 &&
	       places->read(places->arg, address, &again, sizeof again) &&
	       memcmp(lock, &again, sizeof again) == 0;
}

const struct tdt_lock *tdt__lock_read(struct tdt__lock_places *places,
				      const struct tdt_wait *wait)
{
	if (wait->kind != TDT_WAIT_MUTEX)
		return NULL;
	if (!places->last.read || places->last.address != wait->object) {
		places->last.read = true;
		places->last.address = wait->object;
		places->last.is_lock = read_anew(places, wait->object, &places->last.lock);
	}
	return places->last.is_lock ? &places->last.lock : NULL;
}

void tdt__lock_renew(struct tdt__lock_places *places, struct tdt_wait *wait, uint64_t waiter)
{
	const struct tdt_lock *lock = tdt__lock_read(places, wait);

	if (lock == NULL || (lock->owner == waiter && wait->owner != waiter))
		return;
	wait->owner = lock->owner;
	wait->handed_ns = lock->owner != 0 ? tdt__handed_ns(lock->handed, places->now) : 0;
}

/* The members by their ids, once they are needed. */
struct by_id {
	struct tdt__lock_places *places;
	struct tdt__index index;
	bool made;
};

/* The first member with this id; NULL: there is none. */
static struct tdt__member *owner_with(const struct by_id *by_id, uint64_t id)
{
	const struct tdt__lock_places *places = by_id->places;
	struct tdt__member *member;
	uint32_t i;

	TDT__INDEX_EACH (i, &by_id->index, tdt__hash_id(id)) {
		member = places->member(places->arg, i);
		if (member->info.id == id)
			return member;
	}
	return NULL;
}

/* Nothing is known of tasks that have one id.  Many of them would also make the index slow. */
static void add_member(struct by_id *by_id, size_t i)
{
	uint64_t id = by_id->places->member(by_id->places->arg, i)->info.id;
	struct tdt__member *same = owner_with(by_id, id);

	if (same != NULL)
		same->settled = 0;
	else
		tdt__index_add(&by_id->index, tdt__hash_id(id), (uint32_t)i);
}

/* False: no memory. */
static bool make_index(struct by_id *by_id)
{
	size_t n = by_id->places->n;

	if (by_id->made)
		return true;
	if (n >= TDT__INDEX_NONE || tdt__index_reserve(&by_id->index, n) != 0)
		return false;
	for (size_t i = 0; i < n; i++)
		add_member(by_id, i);
	by_id->made = true;
	return true;
}

/* Look at a lock that was handed to a task. */
static void judge(struct tdt_wait *wait, struct by_id *by_id)
{
	const struct tdt_lock *lock = tdt__lock_read(by_id->places, wait);
	const struct tdt__member *owner;

	if (lock == NULL || lock->owner != wait->owner)
		return;
	wait->handed_ns = tdt__handed_ns(lock->handed, by_id->places->now);
	if (wait->handed_ns == 0)
		return;
	owner = make_index(by_id) ? owner_with(by_id, wait->owner) : NULL;
	wait->futurelock = owner != NULL && owner->settled > WOKEN_WITHIN &&
			   lock->handed <= owner->settled - WOKEN_WITHIN;
}

void tdt__futurelocks_find(struct tdt__lock_places *places)
{
	struct by_id by_id = { .places = places };

	for (size_t i = 0; i < places->n; i++) {
		const struct tdt_task_info *info = &places->member(places->arg, i)->info;

		for (uint32_t k = 0; k < info->n_waits && info->waits != NULL; k++) {
			struct tdt_wait *wait = tdt__own_wait(info, k);

			if (wait->handed_ns != 0)
				judge(wait, &by_id);
		}
	}
	tdt__index_fini(&by_id.index);
}
