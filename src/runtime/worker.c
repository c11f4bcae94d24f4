// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Workers: queueing tasks, finding the next one, and the thread that polls them. */

#include "runtime/worker.h"

#include <stdio.h>

#include <tdt/integrate/hooks.h>

#include "base/clock.h"
#include "runtime/rt.h"
#include "runtime/task.h"

#define TURN 32 /* the number of polls for which the clock is read once */
/* Once in so many polls a worker looks elsewhere first (worker.h).  Out of step with turns. */
#define SHARED_EVERY 61
#define DRIVER_EVERY 244 /* a system call */

void tdt__worker_init(struct tdt__worker *worker, struct tdt_rt *rt, unsigned number)
{
	worker->rt = rt;
	worker->number = number;
	worker->random = number + 1;
	pthread_mutex_init(&worker->live.lock, NULL); /* a default one: this never fails */
	sem_init(&worker->wake, 0, 0);
}

void tdt__worker_fini(struct tdt__worker *worker)
{
	sem_destroy(&worker->wake);
	pthread_mutex_destroy(&worker->live.lock);
}

/* --- Putting tasks into queues ----------------------------------------------- */

bool tdt__worker_schedule(struct tdt_rt *rt, struct tdt__task *task)
{
	struct tdt__worker *worker = tdt__current.worker;
	bool notifies = tdt__current.deals != rt;

	if (worker != NULL && worker->rt == rt) {
		notifies &= !tdt__run_queue_is_empty(&worker->queue); /* a lone task: idle.h */
		/* The oldest tasks give way, or the same ones would always wait. */
		while (!tdt__run_queue_push(&worker->queue, task)) {
			struct tdt__task *last, *old = tdt__run_queue_halve(&worker->queue, &last);

			if (old != NULL) /* open while there are workers */
				tdt__inject_push(&rt->inject, old, last, TDT__RUN_QUEUE_HALF);
		}
	} else if (!tdt__inject_push(&rt->inject, task, task, 1)) {
		return false;
	}
	if (notifies)
		tdt__idle_notify(rt);
	return true;
}

/* --- Taking them out ----------------------------------------------------------- */

/* Take this worker's share of the shared queue: return one task, and queue the others here. */
static struct tdt__task *take_batch(struct tdt__worker *worker)
{
	struct tdt_rt *rt = worker->rt;
	size_t n = tdt__inject_length(&rt->inject);
	struct tdt__task *first;

	if (n == 0)
		return NULL;
	n = n / rt->n_workers + 1;
	first = tdt__inject_take(&rt->inject, n < TDT__RUN_QUEUE_HALF ? n : TDT__RUN_QUEUE_HALF);
	if (first == NULL || first->next == NULL)
		return first;
	tdt__run_queue_fill(&worker->queue, first->next);
	/*
	 * For a moment the tasks were in no queue, and a worker that looked for tasks in that
	 * moment may have gone to sleep.
	 */
	tdt__idle_notify(rt);
	return first;
}

/* xorshift32 */
static uint32_t random_number(struct tdt__worker *worker)
{
	worker->random ^= worker->random << 13;
	worker->random ^= worker->random >> 17;
	worker->random ^= worker->random << 5;
	return worker->random;
}

static struct tdt__task *steal(struct tdt__worker *worker)
{
	struct tdt_rt *rt = worker->rt;
	unsigned first = random_number(worker) % rt->n_workers;

	for (unsigned i = 0; i < rt->n_workers; i++) {
		struct tdt__worker *from = &rt->workers[(first + i) % rt->n_workers];
		struct tdt__task *task =
		    from != worker ? tdt__run_queue_steal(&worker->queue, &from->queue) : NULL;

		if (task != NULL)
			return task;
	}
	return NULL;
}

static bool stopping(struct tdt__worker *worker)
{
	/* Relaxed: a worker that sees this late polls one more task. */
	return atomic_load_explicit(&worker->rt->stopping, memory_order_relaxed);
}

/* Find a task for a worker whose own queue is empty.  NULL: the runtime stops. */
static struct tdt__task *find_work(struct tdt__worker *worker)
{
	struct tdt__task *task = take_batch(worker);

	if (task != NULL)
		return task;
	tdt__idle_search(worker->rt);
	while (!stopping(worker)) {
		task = tdt__run_queue_pop(&worker->queue); /* woken in the driver's role */
		if (task == NULL)
			task = steal(worker);
		if (task == NULL)
			task = take_batch(worker);
		if (task != NULL) {
			tdt__idle_found(worker->rt);
			return task;
		}
		tdt__idle_park(worker->rt, worker);
	}
	return NULL;
}

void tdt__worker_now(struct tdt__worker *worker, uint64_t ns)
{
	tdt_worker_now(ns);
	worker->turn = TURN;
}

/* The task to poll next.  NULL: the runtime stops. */
static struct tdt__task *next_task(struct tdt__worker *worker)
{
	struct tdt__task *task = NULL;

	if (stopping(worker))
		return NULL;
	if (++worker->polls % DRIVER_EVERY == 0 ||
	    atomic_load_explicit(&worker->rt->asked, memory_order_relaxed))
		tdt__idle_glance(worker->rt, worker);
	if (worker->polls % SHARED_EVERY == 0 && tdt__inject_length(&worker->rt->inject) != 0)
		task = tdt__inject_take(&worker->rt->inject, 1);
	if (task == NULL)
		task = tdt__run_queue_pop(&worker->queue);
	if (task == NULL) {
		worker->turn = 0;
		task = find_work(worker);
	}
	if (worker->turn == 0)
		tdt__worker_now(worker, tdt__clock());
	worker->turn--;
	return task;
}

/* --- The thread -------------------------------------------------------------------- */

static void *work(void *arg)
{
	struct tdt__worker *worker = arg;
	const struct tdt_worker_attr attr = { .size = sizeof attr, .flags = TDT_WORKER_ALL_WAKES };
	struct tdt__task *task;
	char name[16];

	snprintf(name, sizeof name, "tdt-worker-%u", worker->number % (TDT_RT_MAX_WORKERS + 1));
	pthread_setname_np(pthread_self(), name);
	tdt__current = (struct tdt__current){ .rt = worker->rt,
					      .driver = worker->rt->driver,
					      .worker = worker };
	tdt_worker_thread_start(&attr);
	while ((task = next_task(worker)) != NULL)
		tdt__task_run(task);
	tdt_worker_thread_stop();
	return NULL;
}

int tdt__worker_start(struct tdt__worker *worker)
{
	return -pthread_create(&worker->thread, NULL, work, worker);
}
