// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Parking workers, and waking them. */

#include <config.h>

#include "runtime/idle.h"

#include <stdbool.h>
#include <stddef.h>

#include <tdt/integrate/hooks.h>

#include "runtime/rt.h"
#include "runtime/wait.h"

#define LOOKOUT_MS 10

void tdt__idle_init(struct tdt__idle *idle)
{
	pthread_mutex_init(&idle->lock, NULL); /* a default one: this never fails */
	idle->parked = NULL;
	atomic_init(&idle->n_parked, 0);
	atomic_init(&idle->searching, 0);
	atomic_init(&idle->lookout, NULL);
}

void tdt__idle_fini(struct tdt__idle *idle)
{
	pthread_mutex_destroy(&idle->lock);
}

/* --- The stack; the caller has the lock ------------------------------------- */

static unsigned n_parked(struct tdt__idle *idle)
{
	return atomic_load_explicit(&idle->n_parked, memory_order_relaxed);
}

static void set_lookout(struct tdt__idle *idle, struct tdt__worker *worker)
{
	atomic_store(&idle->lookout, worker); /* sequentially consistent: 3 in idle.h */
}

static bool is_lookout(struct tdt__idle *idle, struct tdt__worker *worker)
{
	return atomic_load_explicit(&idle->lookout, memory_order_relaxed) == worker;
}

static void push_worker(struct tdt__idle *idle, struct tdt__worker *worker)
{
	worker->below = idle->parked;
	idle->parked = worker;
	worker->parked = true;
	atomic_fetch_add(&idle->n_parked, 1); /* sequentially consistent: 3 in idle.h */
}

static void take_off(struct tdt__idle *idle, struct tdt__worker *worker)
{
	struct tdt__worker **link = &idle->parked;

	while (*link != worker)
		link = &(*link)->below;
	*link = worker->below;
	worker->parked = false;
	atomic_fetch_sub(&idle->n_parked, 1);
	if (is_lookout(idle, worker))
		set_lookout(idle, NULL);
}

/* Take a worker off the stack to search.  The lookout stays if another worker is parked. */
static struct tdt__worker *pop_worker(struct tdt__idle *idle)
{
	struct tdt__worker *worker = idle->parked;

	if (is_lookout(idle, worker) && worker->below != NULL)
		worker = worker->below;
	take_off(idle, worker);
	/* On behalf of the worker, so that the next call of wanted() sees a searcher. */
	atomic_fetch_add(&idle->searching, 1);
	return worker;
}

/* --- After a task was put into a queue ------------------------------------------ */

static bool wanted(struct tdt__idle *idle)
{
	/* 2 in idle.h */
	return atomic_load(&idle->searching) == 0 && atomic_load(&idle->n_parked) != 0;
}

void tdt__idle_notify(struct tdt_rt *rt)
{
	struct tdt__idle *idle = &rt->idle;
	struct tdt__worker *worker = NULL;

	if (!wanted(idle))
		return;
	pthread_mutex_lock(&idle->lock);
	if (wanted(idle))
		worker = pop_worker(idle);
	pthread_mutex_unlock(&idle->lock);
	if (worker != NULL)
		sem_post(&worker->wake);
}

void tdt__idle_notify_lone(struct tdt_rt *rt)
{
	if (atomic_load(&rt->idle.lookout) == NULL) /* 2 in idle.h */
		tdt__idle_notify(rt);
}

/* --- Searchers -------------------------------------------------------------------- */

static bool anything(struct tdt_rt *rt)
{
	if (tdt__inject_length(&rt->inject) != 0)
		return true;
	for (unsigned i = 0; i < rt->n_workers; i++)
		if (!tdt__run_queue_is_empty(&rt->workers[i].queue))
			return true;
	return false;
}

void tdt__idle_search(struct tdt_rt *rt)
{
	atomic_fetch_add(&rt->idle.searching, 1);
}

void tdt__idle_found(struct tdt_rt *rt)
{
	if (atomic_fetch_sub(&rt->idle.searching, 1) == 1 && anything(rt)) /* 3 and 4 in idle.h */
		tdt__idle_notify(rt);
}

/* Take the worker off the stack to search.  False: another thread took it off, and wakes it. */
static bool get_up(struct tdt__idle *idle, struct tdt__worker *worker)
{
	bool parked;

	pthread_mutex_lock(&idle->lock);
	parked = worker->parked;
	if (parked) {
		take_off(idle, worker);
		atomic_fetch_add(&idle->searching, 1);
	}
	pthread_mutex_unlock(&idle->lock);
	return parked;
}

/* Put the worker on the stack.  False: the runtime stops. */
static bool lie_down(struct tdt_rt *rt, struct tdt__worker *worker)
{
	struct tdt__idle *idle = &rt->idle;
	bool stopping;

	pthread_mutex_lock(&idle->lock);
	/*
	 * Relaxed: if this misses a stop, tdt__idle_stop() takes the lock later, and wakes the
	 * worker.
	 */
	stopping = atomic_load_explicit(&rt->stopping, memory_order_relaxed);
	if (!stopping) {
		push_worker(idle, worker);
		atomic_fetch_sub(&idle->searching, 1); /* 3 in idle.h */
		if (is_lookout(idle, NULL) && n_parked(idle) < rt->n_workers)
			set_lookout(idle, worker);
	}
	pthread_mutex_unlock(&idle->lock);
	return !stopping;
}

/* Whether the worker stays the lookout.  It does not if all other workers are parked. */
static bool keeps_lookout(struct tdt_rt *rt, struct tdt__worker *worker)
{
	struct tdt__idle *idle = &rt->idle;
	bool keeps;

	pthread_mutex_lock(&idle->lock);
	keeps = is_lookout(idle, worker);
	if (keeps && n_parked(idle) == rt->n_workers) {
		set_lookout(idle, NULL);
		keeps = false;
	}
	pthread_mutex_unlock(&idle->lock);
	return keeps;
}

/* Sleep until another thread takes the worker off the stack, or the lookout finds a task. */
static void sleep_on(struct tdt_rt *rt, struct tdt__worker *worker)
{
	bool keeps = is_lookout(&rt->idle, worker); /* no other thread makes it the lookout */

	while (keeps) {
		if (tdt__wait_ms(&worker->wake, LOOKOUT_MS))
			return;
		keeps = keeps_lookout(rt, worker);
		if (anything(rt) && get_up(&rt->idle, worker)) /* 4 in idle.h */
			return;
	}
	tdt__wait(&worker->wake);
}

void tdt__idle_park(struct tdt_rt *rt, struct tdt__worker *worker)
{
	if (!lie_down(rt, worker))
		return;
	if (anything(rt) && get_up(&rt->idle, worker)) /* 4 in idle.h */
		return;
	tdt_worker_thread_park();
	sleep_on(rt, worker);
	tdt_worker_thread_unpark();
}

void tdt__idle_stop(struct tdt_rt *rt)
{
	struct tdt__idle *idle = &rt->idle;
	struct tdt__worker *worker;

	pthread_mutex_lock(&idle->lock);
	while ((worker = idle->parked) != NULL) {
		take_off(idle, worker);
		sem_post(&worker->wake);
	}
	pthread_mutex_unlock(&idle->lock);
}
