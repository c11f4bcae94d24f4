// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tasks: spawning, waking, polling and ending them. */

#include <config.h>

#include "runtime/task.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>
#include <tdt/tasks.h>

#include "base/refs.h"
#include "base/result.h"
#include "runtime/current.h"
#include "runtime/join_set.h"
#include "runtime/rt.h"

/* --- The waker ------------------------------------------------------------------ */

static void unref_task(struct tdt__task *task)
{
	struct tdt_rt *rt = task->rt;

	if (!tdt__refs_drop(&task->refs))
		return;
	/* Drop the references that tdt__task_drop() took because there were wakers. */
	tdt_handle_unref(task->handle);
	free(task);
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
 * before the wake-up to the poll that follows, which acquires it in tdt__task_run().  From IDLE it
 * also acquires the task from the previous poll, which released it in tdt__task_run().  The task
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
	if (!tdt__rt_is_here(task->rt))
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

static int note_aborted(struct tdt_handle *handle, const struct tdt_task_info *info, void *aborted)
{
	(void)handle;
	*(bool *)aborted = info->aborted != 0;
	return 0;
}

/* The future has been dropped, and the task may be gone: report its end to the set. */
static void end_member(struct tdt__set_member *member, tdt_poll_t result)
{
	bool aborted = false;

	if (result == TDT_PANICKED)
		tdt_task_inspect(member->handle, note_aborted, &aborted);
	tdt__set_member_end(member, result == TDT_READY		       ? 0
				    : result == TDT_PENDING || aborted ? -ECANCELED
								       : -ENOTRECOVERABLE);
}

void tdt__task_drop(struct tdt__task *task, tdt_poll_t result)
{
	struct tdt__set_member *member = task->member;

	/*
	 * Acquire: what the holders of wakers did.  Pairs with unref_task().  If there is no waker
	 * now, there will never be one again.
	 */
	if (atomic_load_explicit(&task->refs, memory_order_acquire) == 1) {
		tdt_future_drop(&task->future);
		free(task);
		if (member != NULL)
			end_member(member, result);
		return;
	}
	tdt_handle_ref(task->handle);
	tdt__rt_ref(task->rt);
	/* Acquire: what the last poll did.  Pairs with the release in tdt__task_run(). */
	atomic_exchange_explicit(&task->state, TDT__DONE, memory_order_acq_rel);
	tdt_future_drop(&task->future);
	unref_task(task);
	if (member != NULL)
		end_member(member, result);
}

void tdt__task_run(struct tdt__task *task)
{
	struct tdt_context cx = { &task->waker };
	unsigned state = TDT__RUNNING;
	tdt_poll_t result;

	/* Acquire: what came before each wake-up.  Pairs with waker_wake_by_ref(). */
	atomic_exchange_explicit(&task->state, TDT__RUNNING, memory_order_acquire);
	result = tdt_future_poll(&task->future, &cx);
	if (result != TDT_PENDING) {
		if (task->live != NULL)
			tdt__live_remove(task);
		tdt__task_drop(task, result);
		return;
	}
	if (task->live == NULL)
		tdt__live_add(&tdt__current.worker->live, task);
	/*
	 * Release the task to the thread that will wake it: pairs with waker_wake_by_ref().  From
	 * then on the task belongs to that thread, and may be gone.
	 */
	if (atomic_compare_exchange_strong_explicit(&task->state, &state, TDT__IDLE,
						    memory_order_release, memory_order_relaxed))
		return;
	/*
	 * The task was woken during the poll.  The exchange passes on to the next poll what these
	 * wake-ups released.
	 */
	atomic_exchange_explicit(&task->state, TDT__SCHEDULED, memory_order_acq_rel);
	tdt__worker_schedule(task->rt, task);
}

/* --- Spawning ----------------------------------------------------------------------- */

static struct tdt__task *spawned_new(struct tdt_rt *rt)
{
	struct tdt__task *task = malloc(sizeof *task);

	if (task == NULL)
		return NULL;
	*task = (struct tdt__task){ .waker = { &waker_vtable }, .rt = rt };
	atomic_init(&task->refs, 1);
	atomic_init(&task->state, TDT__SCHEDULED);
	return task;
}

struct tdt_handle *tdt__task_trace(struct tdt_future *fut, const struct tdt_task_attr *attr)
{
	struct tdt_traced traced = { *fut, tdt_future_handle(fut) };

	if (traced.handle != NULL)
		tdt_handle_ref(traced.handle);
	else
		traced = tdt_traced_with(*fut, attr);
	*fut = traced.future;
	return traced.handle;
}

struct tdt_handle *tdt__task_spawn(struct tdt_rt *rt, struct tdt_future fut,
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
	if (atomic_load_explicit(&rt->closing, memory_order_relaxed))
		return tdt__nothing(-ESHUTDOWN);
	if (fut.drop == NULL)
		return tdt__nothing(-EINVAL);
	task = spawned_new(rt);
	if (task == NULL)
		return NULL;
	handle = tdt__task_trace(&fut, attr);
	if (handle == NULL) {
		free(task);
		return NULL;
	}
	task->future = fut;
	task->handle = handle;
	task->member = member;
	if (member != NULL)
		tdt__set_member_begin(member, handle);
	task->number = atomic_fetch_add_explicit(&rt->spawned, 1, memory_order_relaxed);
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
	return tdt__task_spawn(rt, fut, attr, NULL);
}

int tdt_rt_go(struct tdt_rt *rt, struct tdt_future fut, const struct tdt_task_attr *attr)
{
	struct tdt_handle *handle = tdt_rt_spawn(rt, fut, attr);
	int error = handle != NULL ? 0 : -errno;

	if (error != 0)
		tdt_future_drop(&fut);
	tdt_handle_unref(handle);
	return tdt__result(error);
}
