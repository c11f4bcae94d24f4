// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Locks whose owners have ended: see orphans.h. */

#include "facts/orphans.h"

#include <stdbool.h>
#include <stdlib.h>

#include <tdt/future.h>
#include <tdt/integrate/hooks.h>

#include "base/array.h"
#include "tree/findings.h"
#include "tree/waits.h"

/* The owners that waits name. */
struct owner {
	uint64_t id;
	bool lives;
};

struct owners {
	TDT__TABLE(struct owner, owner, n);
	size_t live, waits;
	bool failed; /* there was no memory */
};

static struct owner *find_owner(const struct owners *owners, uint64_t id)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &owners->owner_table.index, tdt__hash_id(id))
		if (owners->owner[i].id == id)
			return &owners->owner[i];
	return NULL;
}

static void see_live(void *arg, uint64_t id)
{
	struct owners *owners = arg;
	struct owner *owner = find_owner(owners, id);

	if (owner == NULL || owner->lives)
		return;
	owner->lives = true;
	owners->live++;
}

/* Call `each` for each wait for a lock that has an owner. */
typedef void wait_fn(struct tdt_wait *wait, void *arg);
static void each_wait(const struct tdt__lock_places *places, wait_fn *each, void *arg)
{
	for (size_t i = 0; i < places->n; i++) {
		const struct tdt_task_info *info = &places->member(places->arg, i)->info;

		if (info->state != TDT_TASK_WAITING || info->waits == NULL)
			continue;
		for (uint32_t k = 0; k < info->n_waits; k++)
			if (info->waits[k]->kind == TDT_WAIT_MUTEX && info->waits[k]->owner != 0)
				each(tdt__own_wait(info, k), arg);
	}
}

static void add_owner(struct tdt_wait *wait, void *arg)
{
	struct owners *owners = arg;
	const struct owner new = { .id = wait->owner };

	owners->waits++;
	if (find_owner(owners, new.id) == NULL &&
	    tdt__table_add(&owners->owner_table, tdt__hash_id(new.id), &new, sizeof new) ==
		    TDT__INDEX_NONE)
		owners->failed = true;
}

/* The members that have not ended, and if some owner is none of these, all tasks by now. */
static bool look_up_owners(const struct tdt__lock_places *places, struct owners *owners)
{
	for (size_t i = 0; i < places->n; i++) {
		const struct tdt_task_info *info = &places->member(places->arg, i)->info;

		if (info->state == TDT_TASK_WAITING || info->state == TDT_TASK_RUNNABLE ||
		    info->state == TDT_TASK_RUNNING)
			see_live(owners, info->id);
	}
	return owners->live == owners->n || places->each_holder(places->arg, see_live, owners);
}

struct judging {
	struct tdt__lock_places *places;
	const struct owners *owners;
	struct tdt__orphans *orphans; /* with room for all waits */
};

static void list_orphan(const struct judging *judging, const struct tdt_wait *wait,
			uint64_t taken_at)
{
	const struct tdt__lock_places *places = judging->places;
	struct tdt__orphans *orphans = judging->orphans;
	struct tdt__orphan *orphan = &orphans->lock[orphans->n];

	for (size_t i = 0; i < orphans->n; i++)
		if (orphans->lock[i].wait.object == wait->object)
			return;
	orphans->n++;
	orphan->wait = *wait;
	orphan->taken_at = taken_at;
	if (!places->find_ended(places->arg, wait->owner, &orphan->owner))
		orphan->owner = (struct tdt_registry_holder){ .id = 0 };
	orphan->owner.name[TDT_TASK_RECORD_NAME_SIZE - 1] = '\0';
}

const struct tdt_lock *tdt__orphaned_lock(struct tdt__lock_places *places,
					  const struct tdt_wait *wait)
{
	const struct tdt_lock *lock = tdt__lock_read(places, wait);

	return lock != NULL && lock->owner == wait->owner && lock->taken_at != TDT_LOCK_MOVES
		       ? lock
		       : NULL;
}

static void judge_wait(struct tdt_wait *wait, void *arg)
{
	struct judging *judging = arg;
	const struct tdt_lock *lock;

	if (find_owner(judging->owners, wait->owner)->lives)
		return;
	lock = tdt__orphaned_lock(judging->places, wait);
	if (lock == NULL)
		return;
	wait->orphaned = 1;
	list_orphan(judging, wait, lock->taken_at);
}

void tdt__orphans_find(struct tdt__lock_places *places, struct tdt__orphans *orphans)
{
	struct owners owners = { 0 };
	struct judging judging = { places, &owners, orphans };

	*orphans = (struct tdt__orphans){ 0 };
	each_wait(places, add_owner, &owners);
	if (owners.waits == 0)
		return;
	if (!owners.failed && look_up_owners(places, &owners) && owners.live < owners.n)
		orphans->lock = calloc(owners.waits, sizeof *orphans->lock);
	places->last.read = false;
	if (orphans->lock != NULL)
		each_wait(places, judge_wait, &judging);
	tdt__table_fini(&owners.owner_table);
}

struct tdt_task_info tdt__orphan_info(struct tdt__orphan *orphan)
{
	const struct tdt_registry_holder *owner = &orphan->owner;

	orphan->waits[0] = &orphan->wait;
	return (struct tdt_task_info){ .size = sizeof(struct tdt_task_info),
					.id = orphan->wait.owner,
					.name = owner->name[0] != '\0' ? owner->name : NULL,
					.state = owner->id == 0 ? TDT_TASK_UNKNOWN
						 : owner->outcome == TDT_READY
							 ? TDT_TASK_READY
							 : TDT_TASK_PANICKED,
					.n_waits = 1,
					.waits = orphan->waits };
}
