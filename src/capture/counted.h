/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_COUNTED_H
#define TDT_SRC_CAPTURE_COUNTED_H

/*
 * Counted clones.  A leaf may register its waker, then find that it is ready, and let the task go
 * on to another leaf in the same poll: a ghost leaf.  So in polls made for a request the substitute
 * hands out wakers of ours, which forward to the clone of the runtime's waker and count their
 * holders.  When the poll has ended, a leaf whose counted clone nobody holds does not wait, and is
 * taken out of the capture.
 *
 *   the requester  tdt__counted_prepare()  before the poll: gives the capture some counted clones of the pool
 *   substitute.c   tdt__counted_give()     in the leaf's clone: takes one of these, else one of the pool
 *   the leaf       wake, drop              the last holder gives the runtime's clone up at once; any thread, also in
 *                                          signal handlers
 *   wrapper.c         tdt__counted_settle()   when the child's poll has returned: removes the leaves that went on
 *   the requester  tdt__counted_release()  when it has the capture: gives up what the capture holds
 *
 * A counted clone goes back to the pool when neither a leaf nor a capture holds it.  The pool is
 * filled by requesters and by the watch, never in a poll: if it is empty, the leaf gets the
 * runtime's own clone, and is never removed.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/future.h>

struct tdt__capture;
struct tdt__counted;
struct tdt__poll;

extern const struct tdt_waker_vtable tdt__counted_vtable;

/* One that was handed out in a captured poll. */
struct tdt__clone {
	struct tdt__counted *counted;
	uint32_t leaf; /* the innermost frame of the leaf that it was handed to */
	bool held;     /* when the poll had ended */
};

/*
 * Whether leaves get counted clones in a poll that was made for a request, or else only for the
 * watch.
 */
bool tdt__counted_wanted(bool requested);

/* A captured poll begins. */
void tdt__counted_begin(struct tdt__capture *capture, bool requested);

/* Have `n` counted clones at least in the pool, as far as there is memory.  Not in polls. */
void tdt__counted_stock(uint32_t n);

/* How many counted clones were made so far; for tests. */
uint32_t tdt__counted_made(void);

/* Have `n` counted clones in the capture, as far as the pool has them.  Not in polls. */
void tdt__counted_prepare(struct tdt__capture *capture, uint32_t n);

/*
 * What the leaf that was just recorded, and cloned the waker of `poll`, is to have in the place of
 * `real`, which it would own.  No lock, no allocation.
 */
const struct tdt_waker *tdt__counted_give(struct tdt__poll *poll, const struct tdt_waker *real);

/*
 * The poll of the capture has ended and the task waits: remove the leaves that went on, those whose
 * counted clone was dropped and never woken.  If none is held, nothing is known: all leaves stay.
 */
void tdt__counted_settle(struct tdt__capture *capture);

/*
 * Give up what the capture holds: the counted clones that were handed out in its poll, which has
 * ended; with `all` those that it was prepared with, too.  Any number of threads that have a
 * reference may do it at once.
 */
void tdt__counted_release(struct tdt__capture *capture, bool all);

/* The clone of the runtime's waker that a counted clone forwards to. */
const struct tdt_waker *tdt__counted_real(const struct tdt_waker *waker);

/* Do as the environment says, once a process. */
void tdt__counted_by_environment(void);

/* Who makes counted clones.  Held across fork (fork.c). */
extern pthread_mutex_t tdt__counted_lock;

#endif
