/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A task: a traced future, and the state that says when it will be polled.  The task is also its
 * own waker, and each clone of this waker.
 *
 *   IDLE       in no queue: the task is polled again only after a wake-up
 *   SCHEDULED  in one queue, or on its way into one; or tdt_rt_block_on() will poll it
 *   RUNNING    a worker polls the task
 *   NOTIFIED   RUNNING, and woken during this poll: the worker will put it into its queue
 *   DONE       ended or dropped: a wake-up does nothing
 *
 *   from         to           changed by
 *   IDLE         SCHEDULED    the thread that wakes the task, and then puts it into a queue
 *   SCHEDULED    RUNNING      the worker that took the task out of a queue
 *   RUNNING      NOTIFIED     the thread that wakes the task
 *   RUNNING      IDLE         the worker, after a pending poll
 *   NOTIFIED     SCHEDULED    the worker, after a pending poll; it then puts the task into a queue
 *   RUNNING      DONE         the worker, after the last poll
 *   any          DONE         tdt_rt_free(), when there are no workers
 *
 * So a task is never in two queues.
 *
 * Each waker has a reference of the task, and there is one more reference until the task is DONE.
 * Until then the runtime stays, since tdt_rt_free() drops all tasks first, and is not called while
 * a thread blocks on it; and the handle, of which the future has a reference.  The task, whose
 * memory is that beside the handle (tdt_handle_room()), needs one of each only if wakers are left
 * when it is dropped: then tdt__task_drop() takes them.
 */

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <tdt/future.h>

struct tdt_handle;
struct tdt_rt;
struct tdt_task_attr;
struct tdt__live;
struct tdt__set_member;

enum tdt__task_state { TDT__IDLE, TDT__SCHEDULED, TDT__RUNNING, TDT__NOTIFIED, TDT__DONE };

struct tdt__task {
	atomic_uint refs;
	atomic_uint state;	/* enum tdt__task_state */
	struct tdt_waker waker; /* wakers are pointers to this; not first, as future.h says */

	struct tdt_future future;  /* used by the worker that polls the task, or by tdt_rt_free() */
	struct tdt_handle *handle; /* constant, as is `rt`; NULL: not traced (tdt_rt_block_on()) */
	struct tdt_rt *rt;

	/*
	 * Of a task that tdt_rt_block_on() polls: raised where another task is put into a queue.
	 * NULL: this is no such task.  Constant.
	 */
	sem_t *sleeper;
	struct tdt__set_member *member; /* of the set that the task is in; NULL: none.  Constant */

	struct tdt__task *next; /* the next in a queue; the owner of the queue uses this */

	/* The list of live tasks that holds this one; NULL until the end of the first poll. */
	struct tdt__live *live;
	LIST_ENTRY(tdt__task) entry; /* in that list, under its lock */
};

/* Whether `waker` is a task's, of any libtdt-rt runtime: waking it runs no foreign code. */
bool tdt__task_has_waker(const struct tdt_waker *waker);

/* A task that is SCHEDULED, and whose one reference is the caller's. */
void tdt__task_init(struct tdt__task *task, struct tdt_rt *rt, const struct tdt_future *fut,
		    struct tdt_handle *handle);

static inline tdt_poll_t tdt__task_poll(struct tdt__task *task)
{
	struct tdt_context cx = { &task->waker };

	/*
	 * Acquire: what came before each wake-up.  Pairs with waker_wake_by_ref(); or, if there is
	 * no waker that could change the state now, as before the first poll, with unref_task().
	 */
	if (atomic_load_explicit(&task->refs, memory_order_acquire) == 1)
		atomic_store_explicit(&task->state, TDT__RUNNING, memory_order_relaxed);
	else
		atomic_exchange_explicit(&task->state, TDT__RUNNING, memory_order_acquire);
	return tdt_future_poll(&task->future, &cx);
}

/*
 * End a pending poll.  True: the task is IDLE, belongs to the thread that will wake it, and may be
 * gone.  False: it was woken during the poll, and is SCHEDULED.
 */
static inline bool tdt__task_rests(struct tdt__task *task)
{
	unsigned state = TDT__RUNNING;

	/* Release the task to the thread that will wake it: pairs with waker_wake_by_ref(). */
	if (atomic_compare_exchange_strong_explicit(&task->state, &state, TDT__IDLE,
						    memory_order_release, memory_order_relaxed))
		return true;
	/* The exchange passes on to the next poll what the wake-ups released. */
	atomic_exchange_explicit(&task->state, TDT__SCHEDULED, memory_order_acq_rel);
	return false;
}

/* Poll a task that was taken out of a queue, on a worker.  The task may be gone afterwards. */
void tdt__task_run(struct tdt__task *task);

/*
 * Drop a task that is in no queue and no list, is not being polled, and never will be.  `result` is
 * that of its last poll; TDT_PENDING: it has not ended.
 */
void tdt__task_drop(struct tdt__task *task, tdt_poll_t result);

/*
 * Trace `*fut`, unless it is a traced future already, and return a reference of its handle.  NULL
 * and errno: that failed, and `*fut` is as before.
 */
struct tdt_handle *tdt__task_trace(struct tdt_future *fut, const struct tdt_task_attr *attr);

/*
 * Spawn a task, as tdt_rt_spawn() does, into the set of `member` (may be NULL), which the task then
 * takes over.  NULL: `*fut` is as before.
 */
struct tdt_handle *tdt__task_spawn(struct tdt_rt *rt, struct tdt_future *fut,
				   const struct tdt_task_attr *attr,
				   struct tdt__set_member *member);

/* --- What a task does for the set that it is in (join_set.c) --------------------- */

/* Enter the task of `handle`, which is about to be scheduled, into the member's set. */
void tdt__set_member_begin(struct tdt__set_member *member, struct tdt_handle *handle);

/*
 * The task of `member` has ended, and its future has been dropped.  `result` is that of its last
 * poll; TDT_PENDING: it was dropped before.  Frees what is not needed.
 */
void tdt__set_member_end(struct tdt__set_member *member, tdt_poll_t result);
