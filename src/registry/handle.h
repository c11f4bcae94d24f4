/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_REGISTRY_HANDLE_H
#define TDT_SRC_REGISTRY_HANDLE_H

/*
 * A traced future's record: the state of its wrapper, and what its handles point to.  It lives until the future and all
 * handles are gone.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/registry.h>
#include <tdt/trace.h>

#include "registry/registry.h"

struct tdt__joiner;
struct tdt__request;

/* For those who await its end: see join.c. */
enum tdt__outcome {
	TDT__OUTCOME_NOBODY,   /* it has not ended, and nobody awaits that */
	TDT__OUTCOME_SOMEBODY, /* it has not ended, and somebody does, or did */
	TDT__OUTCOME_READY,    /* it has ended: from here on */
	TDT__OUTCOME_PANICKED,
	TDT__OUTCOME_DROPPED
};

/*
 * What record.own_bits are.  TDT__OWN_CLONE: `kept` was passed to the poll it was made in, its clone returned itself.
 * The rest counts, as far as it can, the polls that were made only because somebody asked, after which it waited still.
 */
#define TDT__OWN_CLONE 1u
#define TDT__ASKED_POLL 2u   /* one such poll */
#define TDT__ASKED_POLLS 128 /* the first that can't be told from none */

/* The waker a child is polled with while a capture is made, or a tracer watches: see substitute.c. */
struct tdt__substitute {
	struct tdt_waker waker; /* first: what the child sees is a pointer to this */
	/*
	 * The runtime's waker; NULL outside of such a poll, when a leaf that kept the borrowed pointer gets nothing.
	 * Relaxed: another thread that may use it has been set to work by the poll, which then waits for it.
	 */
	const struct tdt_waker *_Atomic real;
};

/*
 * It lies in the registry (registry.h), where its `record` is found by others.  `record.state` is written by the poller,
 * with release where another may then act on it (wrapper.c); askers acquire (request.c).  The order of what is private
 * matters for its size alone.
 */
struct tdt_handle {
	/* The poller's, read by nobody else; with record.poll.  (In a free record: the next of its shard.) */
	void *child_state;
	void (*child_drop)(void *state);

	/*
	 * The waker of the last pending poll, owned; NULL: none yet, or an asker took it to wake the task.  Exchanged:
	 * whoever gets it out of here owns it.
	 */
	const struct tdt_waker *_Atomic kept;

	struct tdt__substitute substitute;
	struct tdt__request *requests; /* under tdt__request_lock; the newest first */
	struct tdt__joiner *joiners;   /* under tdt__request_lock; the newest first */

	atomic_uint refs;           /* of the future and of handles; 0: the record is free */
	_Atomic uint16_t elsewhere; /* clones of the substitute on other threads; as its `real` is */

	/* Written by both, under tdt__request_lock; read by the poller without, after its barrier. */
	_Atomic uint8_t request;
	_Atomic uint8_t outcome; /* enum tdt__outcome: from the poller the end, the rest under tdt__request_lock */

	/*
	 * What others may look at: see TDT__PEEK().  Its `own_bits`: above.  `own_hint`: see tdt__frames_hint().
	 * `own_woken`: see tdt__was_woken().  `own_epoch`: of the watch, when the task was last looked at (or what it was
	 * promised: last_tree.h).
	 */
	struct tdt_record record;
};

#define TDT__HINT_UNIT 8u

/* How many frames the last capture took, or some more; or as many as that can tell. */
static inline uint32_t tdt__frames_hint(const struct tdt_handle *task)
{
	return TDT__PEEK(task->record.own_hint) * TDT__HINT_UNIT;
}

/* What `own_woken` is if the last wake-up that the runtime told of came after that poll began; 0: it never told. */
static inline uint8_t tdt__woken_mark(uint64_t polls)
{
	return 0x80 | (polls & 0x7f);
}

/*
 * Whether the runtime told of a wake-up since the task's poll number `polls` began, asking for a trace not counted: it
 * is on its way to the next then, and what it said in that one need not be true any more.
 *
 * A wake-up that is not seen here came with what that poll has found: the lock, or the like, of what is waited for
 * orders them.
 */
static inline bool tdt__was_woken(const struct tdt_handle *task, uint64_t polls)
{
	return TDT__PEEK(task->record.own_woken) == tdt__woken_mark(polls);
}

/*
 * Have the mark be of a poll that is gone for good, if the task is polled and was not woken since the one before: else
 * it would seem to be woken when the count of polls has come round.  Who wakes it meanwhile has the last word.
 */
static inline void tdt__not_woken(struct tdt_handle *task)
{
	uint8_t mark = TDT__PEEK(task->record.own_woken);

	if (mark != 0 && mark != tdt__woken_mark(task->record.polls))
		__atomic_compare_exchange_n(&task->record.own_woken, &mark, tdt__woken_mark(task->record.polls - 2),
					    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/*
 * As tdt_handle_ref(), of a place in the registry that may be any task's, or nobody's: false unless it still is the task
 * that it was when its `seq` was read.
 */
bool tdt__handle_ref_if_same(struct tdt_handle *task, uint32_t seq);

#endif
