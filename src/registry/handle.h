/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The record of a traced future: the state of its wrapper, and the object that its handles point
 * to.  It lives until the future and all handles are gone.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

#include "facts/record.h"
#include "registry/registry.h"

struct tdt__joiner;
struct tdt__request;

/* How a task ended, for its joiners: see join.c. */
enum tdt__outcome {
	TDT__OUTCOME_NOBODY,   /* the task has not ended, and never had a joiner */
	TDT__OUTCOME_SOMEBODY, /* the task has not ended, and has or had a joiner */
	TDT__OUTCOME_READY,    /* this value and the next ones: the task has ended */
	TDT__OUTCOME_PANICKED,
	TDT__OUTCOME_DROPPED
};

/*
 * The bits of record.own_bits.  TDT__OWN_CLONE: when the saved waker was made, the
 * runtime's `clone` returned the waker that the poll was given.  All other bits count the polls
 * that were made only for a request: see tdt__requested_polls().
 */
#define TDT__OWN_CLONE 1u

/*
 * The waker that a child is polled with while a capture is made or a tracer is attached to
 * task-waker-clone: see substitute.c.
 */
struct tdt__substitute {
	struct tdt_waker waker; /* the first field, because the child gets a pointer to it */
	/*
	 * The runtime's waker.  NULL outside such a poll: a leaf that kept the borrowed pointer
	 * beyond its poll then gets nothing.  Relaxed: any other thread that may use this field got
	 * its work from the poll, which then waits for that thread.
	 */
	const struct tdt_waker *_Atomic real;
};

/*
 * The handle lies in the registry (registry.h), where other threads find its `record`.  The poller
 * writes `record.state`, with release where another thread may act on the new value (wrapper.c);
 * requesters load it with acquire (request.c).  The first cache line has all that a poll needs if
 * there is no request.
 */
struct tdt_handle {
	/*
	 * What other threads may read: see TDT__PEEK().  These fields of it are the library's own:
	 *
	 * `waker`: the saved waker, an owned clone of the waker of the last pending poll.  0: there
	 * was no such poll yet, or a requester took the saved waker to wake the task.  The field is
	 * only exchanged (tdt__saved_exchange()): the thread whose exchange returns the waker owns
	 * it.
	 *
	 * `leaf`: the owner of the task writes it: see capture/leaf_list.h.
	 *
	 * `child_state`: only the poller uses it, and `poll`; but others look there for the
	 * function of a task without a future (facts/task.c).  In a free record it is the address
	 * of the next free record of the shard.
	 *
	 * `joiners`: the list of joiners, the newest first, under tdt__request_lock.
	 *
	 * `own_request`: the poller and requesters write it under tdt__request_lock.  The poller
	 * reads it without the lock, after its barrier.
	 *
	 * `own_bits` is described above, and `own_hint` at tdt__frames_hint().  `own_epoch` is the
	 * epoch of the watch in which the task was last captured for it, or a promise
	 * (last_tree.h).
	 */
	struct tdt_task_record record;

	/*
	 * An enum tdt__outcome.  The poller stores how the task ended, without the lock; joiners
	 * store TDT__OUTCOME_SOMEBODY under tdt__request_lock.
	 */
	_Atomic uint8_t outcome;
	/*
	 * Whether the list at `record.leaf` was set outside of polls, and answers requests.
	 * Relaxed: a reader looks at `record.state` and `record.polls` besides.
	 */
	_Atomic bool leaf_answers;
	/* How often other threads cloned the substitute; relaxed, like `real`. */
	_Atomic uint16_t elsewhere;
	atomic_uint refs; /* of the future and of handles; 0: the record is free */
	/* Only the poller uses it; others see whether it is NULL. */
	void (*child_drop)(void *state);
	struct tdt__substitute substitute;
	struct tdt__request *requests; /* under tdt__request_lock; the newest first */
};

/* Tasks of tdt_task_new() have this poll function, which nobody calls. */
tdt_poll_t tdt__callback_poll(void *state, struct tdt_context *cx);

/* A task that its runtime reports, and nobody traces: tdt_hook_spawn(). */
static inline bool tdt__is_reported_task(const struct tdt_handle *task)
{
	return TDT__PEEK(task->record.poll) == TDT_TASK_RECORD_REPORTED;
}

/* A task without a future: one of tdt_task_new(), or one that is only reported. */
static inline bool tdt__is_callback_task(const struct tdt_handle *task)
{
	return TDT__PEEK(task->record.poll) == (uintptr_t)tdt__callback_poll ||
	       tdt__is_reported_task(task);
}

/*
 * Put `waker`, or NULL, in the place of the saved waker, and return the saved waker: the caller
 * owns it.  Release what `waker` points to; acquire what the thread did that put the saved waker,
 * or NULL, there.  Pairs with itself.
 */
static inline const struct tdt_waker *tdt__saved_exchange(struct tdt_handle *task,
							  const struct tdt_waker *waker)
{
	return (const struct tdt_waker *)(uintptr_t)__atomic_exchange_n(
	    &task->record.waker, (uintptr_t)waker, __ATOMIC_ACQ_REL);
}

#define TDT__HINT_UNIT 32u

/*
 * The number of frames for which the last capture took room, rounded up; or the largest number that
 * `own_hint` can express, if that is less.
 */
static inline uint32_t tdt__frames_hint(const struct tdt_handle *task)
{
	return (TDT__PEEK(task->record.own_hint) & TDT__HINT_FRAMES) * TDT__HINT_UNIT;
}

/*
 * Whether the runtime reported a wake-up since the task's poll number `polls` began.  Wake-ups that
 * were made for requests do not count.  If so, the task is runnable, and what it reported in that
 * poll may no longer be true.
 *
 * A wake-up that is missed here belongs to a change that the poll has already seen: the lock (or
 * the like) of the resource that the task waits for orders the change and the poll.
 */
static inline bool tdt__was_woken(const struct tdt_handle *task, uint64_t polls)
{
	return tdt__woken_since(TDT__PEEK(task->record.woken), TDT__PEEK(task->record.woken_polls),
				polls);
}

/* Nobody has a reference any more: the record has no task, and is to be given back or kept. */
void tdt__handle_over(struct tdt_handle *task);

/*
 * Like tdt_handle_ref(), for a record that may be free, or belong to any task by now.  Returns
 * false unless the record still belongs to the task that it had when its `seq` was read.
 */
bool tdt__handle_ref_if_same(struct tdt_handle *task, uint32_t seq);
