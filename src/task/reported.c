// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A table with a list for each remainder of the ids, which a runtime gives one after the other. */

#include <config.h>

#include "task/reported.h"

#include <stdlib.h>

#include "capture/fiber.h"

#define LISTS (1u << 17) /* some 1 MiB, of which the kernel gives what is used */

typedef struct tdt_fiber *_Atomic list;

static list *_Atomic table; /* set once, to a table that stays */

static list *list_of(uint64_t id)
{
	/* Acquire the zeros of the table.  Pairs with make_table(). */
	list *lists = atomic_load_explicit(&table, memory_order_acquire);

	return lists != NULL ? &lists[id % LISTS] : NULL;
}

static bool make_table(void)
{
	list *lists = calloc(LISTS, sizeof *lists), *none = NULL;

	/* Release the zeros.  Pairs with list_of(). */
	if (lists != NULL &&
	    !atomic_compare_exchange_strong_explicit(&table, &none, lists, memory_order_release,
						     memory_order_relaxed))
		free(lists); /* another thread made one */
	return lists != NULL;
}

/*
 * Follow the list.  A thread that is in another task's fiber when that is removed, and added to
 * another list, goes on there: so without the lock, NULL may be wrong.
 */
static struct tdt_fiber *follow(list *first, uint64_t id)
{
	/* Acquire the links of the fibers.  Pairs with tdt__reported_add(). */
	struct tdt_fiber *fiber = atomic_load_explicit(first, memory_order_acquire);

	while (fiber != NULL && atomic_load_explicit(&fiber->reported, memory_order_relaxed) != id)
		fiber = atomic_load_explicit(&fiber->next, memory_order_acquire);
	return fiber;
}

struct tdt_fiber *tdt__reported_find(uint64_t id)
{
	list *first = list_of(id);
	struct tdt_fiber *fiber = first != NULL ? follow(first, id) : NULL;

	if (__builtin_expect(fiber == NULL && first != NULL, 0)) {
		pthread_mutex_lock(&tdt__fibers_lock);
		fiber = follow(first, id);
		pthread_mutex_unlock(&tdt__fibers_lock);
	}
	return fiber;
}

bool tdt__reported_add(struct tdt_fiber *fiber, uint64_t id)
{
	struct tdt_fiber *next;
	list *first;

	if (list_of(id) == NULL && !make_table())
		return false;
	first = list_of(id);
	atomic_store_explicit(&fiber->reported, id, memory_order_relaxed);
	next = atomic_load_explicit(first, memory_order_relaxed);
	do
		atomic_store_explicit(&fiber->next, next, memory_order_relaxed);
	/*
	 * Release the link and the id; acquire those of the fibers behind it, for threads that get
	 * them from here.  Pairs with follow().
	 */
	while (!atomic_compare_exchange_weak_explicit(first, &next, fiber, memory_order_acq_rel,
						      memory_order_relaxed));
	return true;
}

/* Under the lock nobody else removes, and what is added comes before the first one. */
void tdt__reported_remove(struct tdt_fiber *fiber)
{
	list *link = list_of(atomic_load_explicit(&fiber->reported, memory_order_relaxed));
	struct tdt_fiber *next, *at = fiber;

	pthread_mutex_lock(&tdt__fibers_lock);
	next = atomic_load_explicit(&fiber->next, memory_order_relaxed);
	/* Release: as when it was added. */
	if (!atomic_compare_exchange_strong_explicit(link, &at, next, memory_order_acq_rel,
						     memory_order_acquire)) {
		while (at != fiber) {
			link = &at->next;
			at = atomic_load_explicit(link, memory_order_acquire);
		}
		atomic_store_explicit(link, next, memory_order_release);
	}
	pthread_mutex_unlock(&tdt__fibers_lock);
	atomic_store_explicit(&fiber->reported, 0, memory_order_relaxed);
}
