// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Polling one future on the calling thread, which sleeps between polls. */

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>

#include "base/refs.h"
#include "base/result.h"
#include "runtime/rt.h"
#include "runtime/task.h"

/* In the heap, since wakers may outlive the call. */
struct blocker {
	struct tdt__task task; /* first: freeing it frees the whole struct */
	sem_t wake;	       /* its `sleeper` */
};

/* While the thread is in here, it is a worker for one task. */
static int run_as_worker(struct tdt__task *task)
{
	const struct tdt_worker_attr attr = { .size = sizeof attr, .flags = TDT_WORKER_ALL_WAKES };
	tdt_poll_t result;

	tdt_worker_thread_start(&attr);
	while ((result = tdt__task_poll(task)) == TDT_PENDING) {
		if (!tdt__task_rests(task))
			continue;
		tdt_worker_thread_park();
		TEMP_FAILURE_RETRY(sem_wait(task->sleeper));
		tdt_worker_thread_unpark();
	}
	tdt__task_drop(task, result);
	tdt_worker_thread_stop();
	return result == TDT_READY ? 0 : -ENOTRECOVERABLE;
}

int tdt_rt_block_on(struct tdt_rt *rt, struct tdt_future fut)
{
	const struct tdt_task_attr attr = { .size = sizeof attr, .name = "block_on" };
	struct blocker *blocker;
	struct tdt_handle *handle;
	int error;

	if (rt == NULL || tdt_future_is_none(&fut) || fut.drop == NULL)
		return tdt__result(-EINVAL);
	if (tdt__current.rt != NULL)
		return tdt__result(-EDEADLK);
	if (!tdt__rt_is_here(rt) || atomic_load_explicit(&rt->closing, memory_order_relaxed))
		return tdt__result(-ESHUTDOWN);
	blocker = malloc(sizeof *blocker);
	if (blocker == NULL)
		return -ENOMEM;
	handle = tdt__task_trace(&fut, &attr); /* NULL: it is not traced */
	tdt__task_init(&blocker->task, rt, &fut, handle);
	sem_init(&blocker->wake, 0, 0);
	blocker->task.sleeper = &blocker->wake;
	tdt__current = (struct tdt__current){ .rt = rt, .driver = rt->driver };
	error = run_as_worker(&blocker->task);
	tdt__current_clear();
	tdt_handle_unref(handle);
	return tdt__result(error);
}
