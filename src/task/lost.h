/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Lost wake-ups: the event came, and nobody called the waker.  A poll that a request brings then
 * finds the event, and the task goes on.  So may a healthy task, if the wake-up is still on its
 * way.  Therefore a poll is a *suspicion* only if
 *
 *   - it was made only for a request, and is not the task's first one;
 *   - the runtime promises to report each call of its wakers (TDT_WORKER_ALL_WAKES), did report the
 *     one that was made for the request, and has reported none since the previous poll began;
 *   - in the previous poll each leaf reported a wait that ends by a wake-up: for a channel, a mutex
 *     or a task.  What a descriptor or a clock says can be seen before the wake-up is made;
 *   - the task went on: it has ended, or an await that had waited is ready; or it woke another
 *     task, and waits for something else than before.
 *
 * It is taken back if, within a second, a waker is called that a leaf may have had before the task
 * went on: then the wake-up was on its way.  To tell these wakers from newer ones, the *era*
 * advances whenever such a task goes on, and for that second its leaves get counted clones
 * (capture/counted.h), which know the era that they were made in: the task is *followed*.  If it
 * waits for the same object again, no waker is a newer one.
 *
 *   poller                                      thread that wakes
 *     note the suspicion                          the record: woken
 *     heavy barrier                               light barrier
 *     woken since?  yes: take it back             suspicions?  yes: take back those of the task
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/future.h>

struct tdt_handle;
struct tdt__request;

/* What a task waits for that may be suspected. */
struct tdt__suspect {
	bool on;
	uint32_t kind, leaves;
	uint64_t object, owner;
	const char *name; /* of one of the requests; empty: none is known */
};

/* --- The poller's side --- */

/* A poll begins that was made only for `requests`, and its wake-up was reported. */
void tdt__suspect_begin(struct tdt__suspect *suspect, const struct tdt_handle *task,
			const struct tdt__request *requests);

/*
 * The child's poll has returned `result`, and nobody else polls the task yet.  `moved`: the task
 * waits for something else.  `waited` is how long it had waited, in nanoseconds.  Returns whether
 * an await that had waited is ready: the task has gone on, also if it waits for the same again.
 */
bool tdt__suspect_end(const struct tdt__suspect *suspect, struct tdt_handle *task,
		      tdt_poll_t result, bool moved, uint64_t waited);

/* In the poll: the task `woken` was woken. */
void tdt__suspect_wakes(const struct tdt_handle *woken);

/*
 * A poll of a followed task (handshake.h) begins, and is over.  False: its suspicion can no longer
 * be taken back, and the task is followed no more.  `stays`: it waits for what it waited for
 * before.
 */
bool tdt__follow_begin(struct tdt_handle *task);
void tdt__follow_end(const struct tdt_handle *task, bool stays);

/* In a child of fork(): nobody is left who could take the open suspicions back. */
void tdt__lost_forked(void);

/* --- The reader's side --- */

struct tdt__losts;

/* Read the lost wake-ups of this process.  The caller frees their list; none without memory. */
void tdt__losts_here(struct tdt__losts *losts, uint64_t now);

/* --- The side of the thread that wakes --- */

extern atomic_uint tdt__lost_open; /* how many suspicions may still be taken back */

/* A waker of the task was called, not for a request, and `tdt__lost_open` is not 0. */
void tdt__lost_wake(const struct tdt_handle *task);
