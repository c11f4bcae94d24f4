// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Whether what a waiting task says of another one is proof. */

#include "facts/proof.h"

#include <string.h>

#include <tdt/integrate/hooks.h>

#include "facts/record.h"

/*
 * Whether the runtime reports when the task is woken.  It did so once; or the task has not been
 * woken yet, since it was polled only once, and other wake-ups were reported.
 */
static bool reports_wakes(const struct tdt__witness *task)
{
	const struct tdt_task_record *record = task->now;

	return record->woken != 0 || (task->others_woken && record->polls < TDT__REQUESTED_POLLS &&
				      tdt__own_polls(record) == 1);
}

/* Whether `wait` is for the end of a task, or for a lock that its `owner` holds now. */
static bool is_owned_now(const struct tdt__lock_places *places, const struct tdt_wait *wait)
{
	struct tdt_lock lock;

	if (wait->kind == TDT_WAIT_TASK)
		return true;
	return wait->kind == TDT_WAIT_MUTEX &&
	       places->read(places->arg, wait->object, &lock, sizeof lock) &&
	       memcmp(lock.magic, TDT_LOCK_MAGIC, sizeof lock.magic) == 0 &&
	       lock.owner == wait->owner;
}

/* Whether that is true of all waits of the task. */
static bool are_owned_now(const struct tdt__lock_places *places, const struct tdt_task_info *info)
{
	for (uint32_t i = 0; i < info->n_waits; i++)
		if (!is_owned_now(places, info->waits[i]))
			return false;
	return true;
}

/* Whether the task has stood still all the time, and waits for a task. */
static bool still_waits(const struct tdt__witness *task)
{
	const struct tdt_task_info *info = task->info;
	struct tdt_wait now;

	if (!task->stood_still || info->n_waits == 0 || info->waits[0]->owner == 0 ||
	    tdt__record_state(task->now) != TDT_TASK_WAITING || !tdt__record_has_wait(task->now))
		return false;
	now = tdt__wait_of_record(task->now);
	return now.kind == info->waits[0]->kind && now.object == info->waits[0]->object;
}

/* The record names the wait of one leaf.  The last tree shows whether it is the only leaf. */
static enum tdt__proof proof_of_tree(const struct tdt__witness *task)
{
	const struct tdt_task_info *info = task->info;
	uint32_t counted_apart = info->leaves_elsewhere + info->leaves_lost;

	if (info->leaves + counted_apart == 0 || info->polls_since != 0 ||
	    (counted_apart == 0 && info->leaves_known != TDT_LEAVES_ALL))
		return TDT__BY_RECORD;
	if (info->leaves + info->leaves_elsewhere != 1 || info->leaves_lost != 0)
		return TDT__UNSURE;
	/* A wake-up of which nobody hears may have been for what is not the wait. */
	return reports_wakes(task) ? TDT__BY_TREE : TDT__BY_RECORD;
}

enum tdt__proof tdt__prove(const struct tdt__lock_places *places, const struct tdt__witness *task)
{
	const struct tdt_task_record *now = task->now;

	if (!still_waits(task))
		return TDT__UNSURE;
	if (task->answered_since)
		return now->wait_owner == task->info->waits[0]->owner ? TDT__BY_POLL : TDT__UNSURE;
	if (now->wait_count != task->info->n_waits || !are_owned_now(places, task->info))
		return TDT__UNSURE;
	return task->answered_at != 0 ? TDT__BY_POLL : proof_of_tree(task);
}

uint64_t tdt__settled(const struct tdt__lock_places *places, const struct tdt__witness *task)
{
	const struct tdt_task_record *now = task->now;

	if (task->info->state != TDT_TASK_WAITING)
		return 0;
	if (tdt__record_state(now) != TDT_TASK_WAITING || now->polls == 0)
		return task->answered_at;
	if (reports_wakes(task))
		return places->now;
	return now->since > task->answered_at ? now->since : task->answered_at;
}
