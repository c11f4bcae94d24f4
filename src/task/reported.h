/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The fibers of the tasks that a runtime reports, by the ids of these tasks (hooked.c).
 *
 * The runtime orders what it reports of one task: the task is added first, found then, and removed
 * last.  (hooked.c sees to ends that come early.)  Threads may do so with different tasks at the
 * same time.  The memory of a fiber stays a fiber, so a thread that follows a list may read fibers
 * that were removed meanwhile, and recognizes its own by the id.
 */

#include <stdbool.h>
#include <stdint.h>

#include "capture/fiber.h"

#define TDT__REPORTED_LISTS (1u << 17) /* 1 MiB, of which the kernel gives what is used */

typedef struct tdt_fiber *_Atomic tdt__reported_list;

/* A list for each remainder of the ids, which a runtime gives one after the other. */
extern tdt__reported_list tdt__reported_lists[TDT__REPORTED_LISTS]
    __attribute__((visibility("hidden")));

static inline tdt__reported_list *tdt__reported_list_of(uint64_t id)
{
	return &tdt__reported_lists[id % TDT__REPORTED_LISTS];
}

/* The first fiber of the list that the task is in; NULL: there is none. */
static inline struct tdt_fiber *tdt__reported_first(uint64_t id)
{
	/* Acquire the fiber.  Pairs with tdt__reported_add(). */
	return atomic_load_explicit(tdt__reported_list_of(id), memory_order_acquire);
}

/* The same as tdt__reported_find(), of a task that is not the first one of its list. */
struct tdt_fiber *tdt__reported_follow(uint64_t id);

/* The fiber of the task; NULL: there is none. */
static inline struct tdt_fiber *tdt__reported_find(uint64_t id)
{
	struct tdt_fiber *first = tdt__reported_first(id);
	bool found = first == NULL ||
		     atomic_load_explicit(&first->reported, memory_order_relaxed) == id;

	return __builtin_expect(found, 1) ? first : tdt__reported_follow(id);
}

/* Add the fiber of a task, or take it out. */
void tdt__reported_add(struct tdt_fiber *fiber, uint64_t id);
void tdt__reported_remove(struct tdt_fiber *fiber);
