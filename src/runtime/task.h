/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_TASK_H
#define TDT_RUNTIME_TASK_H

/*
 * A task: a traced future, and when it is to be polled.  It is also its waker, and the waker's every clone.
 *
 *   IDLE       in no queue: only a wake-up brings it back
 *   SCHEDULED  in one queue, or on its way into one
 *   RUNNING    a worker polls it
 *   NOTIFIED   that, and it was woken meanwhile: the worker puts it into its queue afterwards
 *   DONE       ended or dropped: to wake it does nothing
 *
 *   from         to           who
 *   IDLE         SCHEDULED    who wakes it, and then puts it into a queue
 *   SCHEDULED    RUNNING      the worker that took it out of a queue
 *   RUNNING      NOTIFIED     who wakes it
 *   RUNNING      IDLE         the worker, after a pending poll
 *   NOTIFIED     SCHEDULED    the worker, after a pending poll; it then puts it into its queue
 *   RUNNING      DONE         the worker, after the last poll
 *   any          DONE         tdt_rt_free(), when there are no workers
 *
 * So it is never in two queues.
 *
 * References are held by wakers, and there is one more until the task is done.  Until then the runtime stays, since
 * tdt_rt_free() drops all tasks first; and the handle, of which the future has a reference.  So the task needs none of
 * these two, unless there are wakers left when it is dropped: tdt__task_drop() then takes one of each for them.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/future.h>

struct tdt_handle;
struct tdt_rt;
struct tdt__live;

enum tdt__task_state { TDT__IDLE, TDT__SCHEDULED, TDT__RUNNING, TDT__NOTIFIED, TDT__DONE };

struct tdt__task {
	struct tdt_waker waker; /* first: wakers are pointers to this */
	atomic_uint refs;
	atomic_uint state; /* enum tdt__task_state */

	struct tdt_future future;  /* of who runs it, or of tdt_rt_free() */
	struct tdt_handle *handle; /* constant, as is `rt` */
	struct tdt_rt *rt;

	struct tdt__task *next; /* in a queue; of whom the queue belongs to */

	struct tdt__live *live;		 /* the list of live tasks it is in; NULL: in a queue, or in its first poll */
	struct tdt__task *older, *newer; /* in that list, under its lock */
	uint64_t number;		 /* how many were spawned before */
};

/* Whether it is a task's, of whatever runtime: to wake it runs no code but ours. */
bool tdt__task_has_waker(const struct tdt_waker *waker);

/* Poll a task that was taken out of a queue.  On a worker.  It may be gone afterwards. */
void tdt__task_run(struct tdt__task *task);

/* Drop a task that is in no queue and no list any more, is not being polled, and never will be. */
void tdt__task_drop(struct tdt__task *task);

#endif
