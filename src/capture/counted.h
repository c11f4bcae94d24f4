/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Counted clones.  A leaf may register its waker, then find that it is ready, and let the task go
 * on to another leaf in the same poll: that is a ghost leaf.  Therefore, in polls made for a
 * request, the substitute hands out wakers of ours.  They forward to the clone of the runtime's
 * waker and count their holders.  A leaf whose counted clone has no holder when the poll has ended
 * does not wait, and is removed from the capture.
 *
 *   the requester  tdt__counted_prepare()  before the poll: gives the capture some counted clones of the pool
 *   substitute.c   tdt__counted_give()     in the leaf's clone: takes one of those, or else one of the pool
 *   the leaf       wake, drop              on any thread, also in signal handlers: the last holder gives up the
 *                                          runtime's clone at once
 *   wrapper.c      tdt__counted_settle()   when the child's poll has returned: removes the leaves that went on
 *   the requester  tdt__counted_release()  when it has the capture: gives up what the capture holds
 *
 * A counted clone returns to the pool when neither a leaf nor a capture holds it.  Requesters and
 * the watch fill the pool, never a poll.  If the pool is empty, the leaf gets the runtime's own
 * clone, and is never removed.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/future.h>

struct tdt__capture;
struct tdt__counted;
struct tdt__poll;

extern const struct tdt_waker_vtable tdt__counted_vtable;

#define TDT__ERAS 0x7fffu /* eras are counted modulo one more than this */
#define TDT__OF_ERA 0x8000u /* set in the era of a clone */

/* The era of the clones that are made now: see task/lost.h.  Relaxed: a thread reads its own. */
extern _Atomic uint32_t tdt__counted_era;

/* Whether a clone of the era `of`, a `waking_era` of a thread, is not older than `era`. */
static inline bool tdt__is_of_era(uint32_t of, uint32_t era)
{
	return of != 0 && ((of - era) & TDT__ERAS) <= TDT__ERAS / 2;
}

/* A counted clone that was handed out in a captured poll. */
struct tdt__clone {
	struct tdt__counted *counted;
	uint32_t leaf; /* the innermost frame of the leaf that got it */
	bool held;     /* a leaf held it, or had woken it, when the poll ended */
};

/*
 * Whether leaves get counted clones in a poll that was made for a request (`requested`), or in one
 * that is captured only for the watch.
 */
bool tdt__counted_wanted(bool requested);

/* A poll with this capture begins. */
void tdt__counted_begin(struct tdt__capture *capture, bool requested);

/* Fill the pool to at least `n` counted clones, as far as there is memory.  Never in a poll. */
void tdt__counted_stock(uint32_t n);

/* How many counted clones were made so far; for tests. */
uint32_t tdt__counted_made(void);

/* Give the capture `n` counted clones, as far as the pool has them.  Never in a poll. */
void tdt__counted_prepare(struct tdt__capture *capture, uint32_t n);

/*
 * The waker that a leaf gets instead of `real`, a clone that the leaf would own.  The leaf has
 * cloned the waker of `poll`, and was just recorded.  No lock, no allocation.
 */
const struct tdt_waker *tdt__counted_give(struct tdt__poll *poll, const struct tdt_waker *real);

/*
 * The same in a poll without a capture, of a task whose newer clones must be known (task/lost.h).
 * Returns `real` if leaves get no counted clones, or the pool is empty.
 */
const struct tdt_waker *tdt__counted_follow(const struct tdt_waker *real);

/* Wake the task that is being polled by `real`, as a counted clone would that is made now. */
void tdt__counted_wake_now(const struct tdt_waker *real);

/*
 * The capture's poll has ended and the task waits: remove the leaves that went on.  Their counted
 * clones were dropped and never woken.  If no counted clone is held, all leaves stay, because then
 * nothing is known.
 */
void tdt__counted_settle(struct tdt__capture *capture);

/*
 * Give up the counted clones that the capture holds: those that were handed out in its poll, which
 * has ended, and with `all` those that it was prepared with, too.  Several threads that have a
 * reference may make this call at once.
 */
void tdt__counted_release(struct tdt__capture *capture, bool all);

/* The clone of the runtime's waker that a counted clone forwards to. */
const struct tdt_waker *tdt__counted_real(const struct tdt_waker *waker);

/* Set the mode that the environment requests. */
void tdt__counted_by_environment(void);

/* Protects the making of counted clones.  Held across fork (fork.c). */
extern pthread_mutex_t tdt__counted_lock;
