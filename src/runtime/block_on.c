// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Polling one future on the calling thread, which sleeps between polls. */

#include <config.h>

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <tdt/integrate/hooks.h>

#include "base/refs.h"
#include "base/result.h"
#include "runtime/current.h"
#include "runtime/rt.h"
#include "runtime/task.h"
#include "runtime/wait.h"

/* What wakers and the blocked thread share.  On the heap: wakers may outlive the call. */
struct blocker {
	atomic_uint refs;	/* one for each waker, and one for the call */
	atomic_bool woken;	/* since the last poll began */
	struct tdt_waker waker; /* wakers are pointers to this; not first, as future.h says */
	sem_t wake;		/* raised by the thread that sets `woken` */

	/* The task's; NULL if the task is not traced.  Constant once the future is polled. */
	struct tdt_handle *handle;
};

static void unref_blocker(struct blocker *blocker)
{
	if (!tdt__refs_drop(&blocker->refs))
		return;
	sem_destroy(&blocker->wake);
	tdt_handle_unref(blocker->handle);
	free(blocker);
}

/* A waker is a pointer to a member of the blocker.  It is const because the ABI says so. */
static struct blocker *blocker_of(const struct tdt_waker *waker)
{
	return (struct blocker *)((uintptr_t)waker - offsetof(struct blocker, waker));
}

static const struct tdt_waker *blocker_clone(const struct tdt_waker *waker)
{
	atomic_fetch_add_explicit(&blocker_of(waker)->refs, 1, memory_order_relaxed);
	return waker;
}

static void blocker_wake_by_ref(const struct tdt_waker *waker)
{
	struct blocker *blocker = blocker_of(waker);

	tdt_task_woken(blocker->handle); /* before the poll that follows the wake-up */
	/*
	 * Always an exchange, even if `woken` is set already: it releases what came before the
	 * wake-up to the poll that follows.  Pairs with the exchange in run_future().
	 */
	if (!atomic_exchange_explicit(&blocker->woken, true, memory_order_release))
		sem_post(&blocker->wake);
}

static void blocker_drop(const struct tdt_waker *waker)
{
	unref_blocker(blocker_of(waker));
}

static void blocker_wake(const struct tdt_waker *waker)
{
	blocker_wake_by_ref(waker);
	blocker_drop(waker);
}

static const struct tdt_waker_vtable blocker_vtable = { blocker_clone, blocker_wake,
							blocker_wake_by_ref, blocker_drop };

static struct blocker *blocker_new(void)
{
	struct blocker *blocker = calloc(1, sizeof *blocker);

	if (blocker == NULL)
		return NULL;
	blocker->waker.vtable = &blocker_vtable;
	atomic_init(&blocker->refs, 1);
	sem_init(&blocker->wake, 0, 0);
	return blocker;
}

static tdt_poll_t run_future(struct blocker *blocker, const struct tdt_future *fut)
{
	struct tdt_context cx = { &blocker->waker };
	tdt_poll_t result;

	while ((result = tdt_future_poll(fut, &cx)) == TDT_PENDING) {
		tdt_worker_thread_park();
		tdt__wait(&blocker->wake);
		tdt_worker_thread_unpark();
		/* Acquire: what came before each wake-up.  Pairs with blocker_wake_by_ref(). */
		atomic_exchange_explicit(&blocker->woken, false, memory_order_acquire);
	}
	return result;
}

/* While the thread is in here, it is a worker for one task. */
static int run_as_worker(struct blocker *blocker, struct tdt_future *fut)
{
	const struct tdt_worker_attr attr = { .size = sizeof attr, .flags = TDT_WORKER_ALL_WAKES };
	tdt_poll_t result;

	tdt_worker_thread_start(&attr);
	result = run_future(blocker, fut);
	tdt_future_drop(fut);
	tdt_worker_thread_stop();
	return result == TDT_READY ? 0 : -ENOTRECOVERABLE;
}

static int check_arguments(struct tdt_rt *rt, const struct tdt_future *fut)
{
	if (rt == NULL || tdt_future_is_none(fut) || fut->drop == NULL)
		return -EINVAL;
	if (tdt__current.rt != NULL)
		return -EDEADLK;
	if (atomic_load_explicit(&rt->closing, memory_order_relaxed))
		return -ESHUTDOWN;
	return 0;
}

int tdt_rt_block_on(struct tdt_rt *rt, struct tdt_future fut)
{
	int error = check_arguments(rt, &fut);
	const struct tdt_task_attr attr = { .size = sizeof attr, .name = "block_on" };
	struct blocker *blocker = NULL;

	if (error == 0) {
		blocker = blocker_new();
		error = blocker != NULL ? 0 : -ENOMEM;
	}
	if (error == 0) {
		blocker->handle = tdt__task_trace(&fut, &attr);
		tdt__current = (struct tdt__current){ .rt = rt, .driver = rt->driver };
		error = run_as_worker(blocker, &fut);
		tdt__current_clear();
		unref_blocker(blocker);
	}
	return tdt__result(error);
}
