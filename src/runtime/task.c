// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tasks: spawning, waking, polling and ending them. */

#include "runtime/task.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>

#include "base/hold.h"
#include "base/refs.h"
#include "base/result.h"
#include "runtime/rt.h"

/* --- The waker ------------------------------------------------------------------ */

static void free_task(struct tdt__task *task)
{
	if (task->sleeper == NULL)
		return; /* it lies beside its record */
	sem_destroy(task->sleeper);
	free(task);
}

static void unref_task(struct tdt__task *task)
{
	struct tdt_rt *rt = task->rt;
	struct tdt_handle *handle = task->handle;

	if (!tdt__refs_drop(&task->refs))
		return;
	free_task(task);
	/* Drop the references that tdt__task_drop() took because there were wakers. */
	tdt_handle_unref(handle);
	tdt__rt_unref(rt);
}

/* A waker is a pointer to a member of the task.  It is const because the ABI says so. */
static struct tdt__task *task_of_waker(const struct tdt_waker *waker)
{
	return (struct tdt__task *)((uintptr_t)waker - offsetof(struct tdt__task, waker));
}

static const struct tdt_waker *waker_clone(const struct tdt_waker *waker)
{
	atomic_fetch_add_explicit(&task_of_waker(waker)->refs, 1, memory_order_relaxed);
	return waker;
}

/*
 * This always does a compare-and-swap, even if the state stays the same: it releases what came
 * before the wake-up to the poll that follows, which acquires it in tdt__task_poll().  From IDLE it
 * also acquires the task from the previous poll, which released it in tdt__task_rests().  The task
 * then belongs to this thread, which puts it into a queue.
 */
static void waker_wake_by_ref(const struct tdt_waker *waker)
{
	static const unsigned after[] = { [TDT__IDLE] = TDT__SCHEDULED,
					  [TDT__SCHEDULED] = TDT__SCHEDULED,
					  [TDT__RUNNING] = TDT__NOTIFIED,
					  [TDT__NOTIFIED] = TDT__NOTIFIED };
	struct tdt__task *task = task_of_waker(waker);
	unsigned state = atomic_load_explicit(&task->state, memory_order_relaxed);
	unsigned told = TDT__IDLE; /* the state in which the wake-up was reported */

	/* False in a child of fork() in which a backtrace of a task of the parent is requested. */
	if (!tdt__rt_is_here(task->rt) && task->sleeper == NULL)
		return;
	do {
		if (state == TDT__DONE) {
			tdt_task_woken(task->handle); /* TDT_WORKER_ALL_WAKES */
			return;
		}
		/*
		 * After the exchange it would be too late: the next poll may begin at once.  The
		 * library decides whether the report is news: a wake-up for a request is none, and
		 * may have led to any of these states.
		 */
		if (state != TDT__IDLE && state != told)
			tdt_task_woken(task->handle);
		told = state;
	} while (!atomic_compare_exchange_weak_explicit(
	    &task->state, &state, after[state], memory_order_acq_rel, memory_order_relaxed));
	if (state != TDT__IDLE)
		return;
	tdt_task_woken(task->handle); /* the task belongs to this thread, and is not polled yet */
	if (task->sleeper != NULL)
		sem_post(task->sleeper);
	else
		tdt__worker_schedule(task->rt, task);
}

static void waker_drop(const struct tdt_waker *waker)
{
	unref_task(task_of_waker(waker));
}

static void waker_wake(const struct tdt_waker *waker)
{
	waker_wake_by_ref(waker);
	waker_drop(waker);
}

static const struct tdt_waker_vtable waker_vtable = { waker_clone, waker_wake, waker_wake_by_ref,
						      waker_drop };

bool tdt__task_has_waker(const struct tdt_waker *waker)
{
	return tdt_waker_beneath(waker)->vtable == &waker_vtable;
}

/* --- Polls ------------------------------------------------------------------------ */

void tdt__task_drop(struct tdt__task *task, tdt_poll_t result)
{
	struct tdt__set_member *member = task->member;
	struct tdt_future future = task->future;

	/*
	 * Acquire: what the holders of wakers did.  Pairs with unref_task().  If there is no waker
	 * now, there will never be one again.
	 */
	if (atomic_load_explicit(&task->refs, memory_order_acquire) == 1) {
		free_task(task); /* which lies beside the record of the future, that may go next */
		tdt_future_drop(&future);
	} else {
		tdt_handle_ref(task->handle);
		tdt__rt_ref(task->rt);
		/* Acquire: what the last poll did.  Pairs with tdt__task_rests(). */
		atomic_exchange_explicit(&task->state, TDT__DONE, memory_order_acq_rel);
		tdt_future_drop(&future);
		unref_task(task);
	}
	if (member != NULL)
		tdt__set_member_end(member, result);
}

static void begin_life(struct tdt__task *task, struct tdt__live *live)
{
	task->live = live;
	TDT__HOLD(&live->lock);
	LIST_INSERT_HEAD(&live->tasks, task, entry);
}

static void end_life(struct tdt__task *task)
{
	TDT__HOLD(&task->live->lock);
	LIST_REMOVE(task, entry);
}

void tdt__task_run(struct tdt__task *task)
{
	tdt_poll_t result = tdt__task_poll(task);

	if (result != TDT_PENDING) {
		if (task->live != NULL)
			end_life(task);
		tdt__task_drop(task, result);
		return;
	}
	if (task->live == NULL)
		begin_life(task, &tdt__current.worker->live);
	if (!tdt__task_rests(task))
		tdt__worker_schedule(task->rt, task);
}

/* --- Spawning ----------------------------------------------------------------------- */

_Static_assert(sizeof(struct tdt__task) <= TDT_HANDLE_ROOM, "a task lies beside its record");

void tdt__task_init(struct tdt__task *task, struct tdt_rt *rt, const struct tdt_future *fut,
		    struct tdt_handle *handle)
{
	*task = (struct tdt__task){
		.waker = { &waker_vtable }, .future = *fut, .handle = handle, .rt = rt
	};
	atomic_init(&task->refs, 1);
	atomic_init(&task->state, TDT__SCHEDULED);
}

struct tdt_handle *tdt__task_trace(struct tdt_future *fut, const struct tdt_task_attr *attr)
{
	struct tdt_handle *handle = tdt_future_handle(fut);
	struct tdt_traced traced;

	if (handle != NULL)
		return tdt_handle_ref(handle);
	traced = tdt_traced_with(*fut, attr);
	*fut = traced.future;
	return traced.handle;
}

struct tdt_handle *tdt__task_spawn(struct tdt_rt *rt, struct tdt_future *fut,
				   const struct tdt_task_attr *attr, struct tdt__set_member *member)
{
	struct tdt_handle *handle;
	struct tdt__task *task;

	if (rt == NULL)
		return tdt__nothing(-EINVAL);
	/*
	 * Relaxed: if tdt_rt_free() begins after this load, either the push below finds the queue
	 * closed, or tdt_rt_free() finds the task in the queue.
	 */
	if (!tdt__rt_is_here(rt) || atomic_load_explicit(&rt->closing, memory_order_relaxed))
		return tdt__nothing(-ESHUTDOWN);
	if (fut->drop == NULL)
		return tdt__nothing(-EINVAL);
	handle = tdt__task_trace(fut, attr);
	if (handle == NULL)
		return NULL;
	task = tdt_handle_room(handle);
	tdt__task_init(task, rt, fut, handle);
	task->member = member;
	if (member != NULL)
		tdt__set_member_begin(member, handle);
	/*
	 * If tdt_rt_free() has begun, it is too late to give the future back, since it is traced.
	 * So the task is dropped, as tdt_rt_free() would have done a little later.
	 */
	if (!tdt__worker_schedule(rt, task))
		tdt__task_drop(task, TDT_PENDING);
	return handle;
}

struct tdt_handle *tdt_rt_spawn(struct tdt_rt *rt, struct tdt_future fut,
				const struct tdt_task_attr *attr)
{
	return tdt__task_spawn(rt, &fut, attr, NULL);
}

int tdt_rt_go(struct tdt_rt *rt, struct tdt_future fut, const struct tdt_task_attr *attr)
{
	struct tdt_handle *handle = tdt__task_spawn(rt, &fut, attr, NULL);
	int error = handle != NULL ? 0 : -errno;

	if (error != 0)
		tdt_future_drop(&fut);
	tdt_handle_unref(handle);
	return tdt__result(error);
}
