// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The futurelocks and the orphaned locks of a snapshot. */

#include "stuck_locks.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "names.h"
#include "words.h"

static bool hangs_for_ever(const struct tdt_wait *wait)
{
	return wait->futurelock != 0 || wait->orphaned != 0;
}

bool tdt__waits_in_vain(const struct tdt_task_info *info)
{
	for (uint32_t i = 0; i < info->n_waits; i++)
		if (hangs_for_ever(info->waits[i]))
			return true;
	return false;
}

/* Add the waits of a task for such locks.  False: no memory. */
static bool add_waits(struct tdt__stuck_locks *locks, size_t *room,
		      const struct tdt_task_info *info)
{
	for (uint32_t i = 0; i < info->n_waits && info->waits != NULL; i++) {
		if (!hangs_for_ever(info->waits[i]))
			continue;
		if (!tdt__array_grow(&locks->lock, locks->n, room, sizeof *locks->lock))
			return false;
		locks->lock[locks->n++] =
		    (struct tdt__stuck_lock){ .wait = *info->waits[i], .waits = 1 };
	}
	return true;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_owner(const void *a, const void *b)
{
	const struct tdt_wait *x = &((const struct tdt__stuck_lock *)a)->wait,
			      *y = &((const struct tdt__stuck_lock *)b)->wait;

	if (x->orphaned != y->orphaned)
		return compare(x->orphaned, y->orphaned);
	return x->owner != y->owner ? compare(x->owner, y->owner) : compare(x->object, y->object);
}

/* Join the waits for one lock, which lie one after the other. */
static void join_locks(struct tdt__stuck_locks *locks)
{
	size_t n = 0;

	for (size_t i = 1; i < locks->n; i++)
		if (by_owner(&locks->lock[n], &locks->lock[i]) == 0)
			locks->lock[n].waits++;
		else
			locks->lock[++n] = locks->lock[i];
	locks->n = n + 1;
}

int tdt__stuck_locks_collect(struct tdt__stuck_locks *locks, const struct tdt_snapshot *snapshot)
{
	struct tdt_task_info info;
	size_t room = 0;
	bool enough = true;

	*locks = (struct tdt__stuck_locks){ 0 };
	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n && enough; k++)
			enough = add_waits(locks, &room,
					   tdt__group_task(snapshot->groups[i], k, &info));
	if (locks->n == 0)
		return enough ? 0 : -ENOMEM;
	qsort(locks->lock, locks->n, sizeof locks->lock[0], by_owner);
	join_locks(locks);
	return enough ? 0 : -ENOMEM;
}

void tdt__stuck_lock_line(struct tdt__string *string, const struct tdt__stuck_lock *lock,
			  const struct tdt__names *names)
{
	const struct tdt_wait *wait = &lock->wait;

	tdt__headline(string, wait->orphaned != 0 ? "orphaned lock" : "futurelock", wait->owner,
		      tdt__names_owner(names, wait));
	tdt__string_puts(string, wait->orphaned != 0 ? " has ended without giving back "
						     : " was handed ");
	tdt__wait_object(string, "a mutex", wait);
	if (wait->orphaned == 0)
		tdt__string_printf(string, " %s ago and was polled since, but has not taken it",
				   TDT__DURATION(wait->handed_ns));
	tdt__string_printf(string, ": %s%s", TDT__NUMBER(lock->waits),
			   lock->waits == 1 ? " wait for it hangs\n" : " waits for it hang\n");
}

size_t tdt__stuck_orphans(const struct tdt__stuck_locks *locks)
{
	size_t n = 0;

	for (size_t i = 0; i < locks->n; i++)
		n += locks->lock[i].wait.orphaned != 0;
	return n;
}
