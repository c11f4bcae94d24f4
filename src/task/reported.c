// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The lists of the table, and their locking. */

#include "task/reported.h"

#include <pthread.h>

tdt__reported_list tdt__reported_lists[TDT__REPORTED_LISTS];

static struct tdt_fiber *follow_list(tdt__reported_list *link, uint64_t id)
{
	/* Acquire the links of the fibers.  Pairs with tdt__reported_add(). */
	struct tdt_fiber *fiber = atomic_load_explicit(link, memory_order_acquire);

	while (fiber != NULL && atomic_load_explicit(&fiber->reported, memory_order_relaxed) != id)
		fiber = atomic_load_explicit(&fiber->next, memory_order_acquire);
	return fiber;
}

/*
 * A thread that is at another task's fiber when that is removed, and added to another list, goes on
 * there.  So if it finds nothing, it looks again under the lock.
 */
struct tdt_fiber *tdt__reported_follow(uint64_t id)
{
	tdt__reported_list *list = tdt__reported_list_of(id);
	struct tdt_fiber *fiber = follow_list(list, id);

	if (fiber == NULL) {
		pthread_mutex_lock(&tdt__fibers_lock);
		fiber = follow_list(list, id);
		pthread_mutex_unlock(&tdt__fibers_lock);
	}
	return fiber;
}

void tdt__reported_add(struct tdt_fiber *fiber, uint64_t id)
{
	tdt__reported_list *list = tdt__reported_list_of(id);
	struct tdt_fiber *next = atomic_load_explicit(list, memory_order_relaxed);

	atomic_store_explicit(&fiber->reported, id, memory_order_relaxed);
	do
		atomic_store_explicit(&fiber->next, next, memory_order_relaxed);
	/*
	 * Release the link and the id; acquire those of the fibers behind it, for threads that get
	 * them from here.  Pairs with follow_list().  Sequentially consistent for end_if_early()
	 * (hooked.c).
	 */
	while (!atomic_compare_exchange_weak_explicit(list, &next, fiber, memory_order_seq_cst,
						      memory_order_relaxed));
}

/* Others may add fibers before this one meanwhile.  Under the lock, nobody else removes any. */
static void unlist(struct tdt_fiber *fiber, tdt__reported_list *link)
{
	struct tdt_fiber *next, *at = fiber;

	pthread_mutex_lock(&tdt__fibers_lock);
	next = atomic_load_explicit(&fiber->next, memory_order_relaxed);
	/* Release and acquire as tdt__reported_add() does. */
	if (!atomic_compare_exchange_strong_explicit(link, &at, next, memory_order_acq_rel,
						     memory_order_acquire)) {
		while (at != fiber) {
			link = &at->next;
			at = atomic_load_explicit(link, memory_order_acquire);
		}
		atomic_store_explicit(link, next, memory_order_release);
	}
	pthread_mutex_unlock(&tdt__fibers_lock);
}

void tdt__reported_remove(struct tdt_fiber *fiber)
{
	tdt__reported_list *list =
		tdt__reported_list_of(atomic_load_explicit(&fiber->reported, memory_order_relaxed));
	struct tdt_fiber *only = fiber;

	/* Most are alone in their lists: then nobody removes another one. */
	if (atomic_load_explicit(&fiber->next, memory_order_relaxed) != NULL ||
	    !atomic_compare_exchange_strong_explicit(list, &only, NULL, memory_order_relaxed,
						     memory_order_relaxed))
		unlist(fiber, list);
	atomic_store_explicit(&fiber->reported, 0, memory_order_relaxed);
}
