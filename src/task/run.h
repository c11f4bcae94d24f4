/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* How the run of a fiber, or a poll that a runtime reports, begins and ends. */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "capture/chain.h"
#include "capture/fiber.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "task/fibers.h"

#define RARELY(x) __builtin_expect(!!(x), 0)

/* The fiber that has this link. */
static inline struct tdt_fiber *tdt__fiber_with(struct tdt__poll *link)
{
	return (struct tdt_fiber *)(void *)((char *)link - offsetof(struct tdt_fiber, poll));
}

/* `head`: the link, or that of the innermost poll inside. */
static inline void tdt__put_link(struct tdt_fiber *fiber, struct tdt__poll *head,
				 struct tdt__poll *outer)
{
	fiber->poll.outer = outer;
	atomic_store_explicit(&fiber->link, TDT__LINK_THERE, memory_order_relaxed);
	/* A signal handler may walk the chain, which is whole after each store. */
	atomic_signal_fence(memory_order_release);
	tdt__thread.poll = head;
}

static inline __attribute__((always_inline)) void tdt__note_run(struct tdt_task_record *record,
								uint64_t now, uint32_t thread)
{
	TDT__POKE(record->since, now);
	TDT__POKE(record->thread, thread);
	/*
	 * Release what was noted of this run to readers that find the fiber running: pairs with
	 * running.c.  A reader of the new `polls` does not see the old `state`, and one that sees
	 * what the fiber does from here on sees the new `polls`: pairs with look() in suspended.c.
	 */
	__atomic_store_n(&record->state, TDT_TASK_RECORD_POLLING, __ATOMIC_RELEASE);
	__atomic_store_n(&record->polls, record->polls + 1, __ATOMIC_RELEASE);
	atomic_thread_fence(memory_order_release);
}

/* Release all that the task did, and its list.  Pairs with tdt__request_see(). */
static inline void tdt__store_idle(struct tdt_handle *task)
{
	__atomic_store_n(&task->record.state, TDT_TASK_RECORD_IDLE, __ATOMIC_RELEASE);
}

/*
 * The link of a reported task is out of this thread's chain: release it, and all that was done with
 * it, to the thread that polls or ends the task.  The runtime may have another thread end the task
 * before this one is here, which is rare, and so bears the cost:
 *
 *   this thread          the thread that ends the task
 *     link = NONE          link is THERE: ended = id
 *     light barrier        heavy barrier
 *     ended == id?         link is NONE now?
 *       claim it, free       claim it, free
 *
 * Once the link is released the fiber may be another task's, which has another id.
 */
static inline void tdt__leave_link(struct tdt_fiber *fiber, uint64_t id)
{
	atomic_store_explicit(&fiber->link, TDT__LINK_NONE, memory_order_release);
	tdt__barrier_light();
	if (RARELY(atomic_load_explicit(&fiber->ended, memory_order_relaxed) == id))
		tdt__reported_free(fiber, id);
}
