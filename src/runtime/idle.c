// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Parking workers, and waking them. */

#include <config.h>

#include "idle.h"

#include <stdbool.h>
#include <stddef.h>

#include <tdt/hooks.h>

#include "rt.h"
#include "wait.h"

void tdt__idle_init(struct tdt__idle *idle)
{
	pthread_mutex_init(&idle->lock, NULL); /* a default one: this never fails */
	idle->parked = NULL;
	atomic_init(&idle->n_parked, 0);
	atomic_init(&idle->searching, 0);
}

void tdt__idle_fini(struct tdt__idle *idle)
{
	pthread_mutex_destroy(&idle->lock);
}

/* --- The stack; the caller has the lock ------------------------------------- */

static void push(struct tdt__idle *idle, struct tdt__worker *worker)
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
}

/* --- Who has put a task into a queue ------------------------------------------- */

static bool wanted(struct tdt__idle *idle)
{
	return atomic_load(&idle->searching) == 0 && atomic_load(&idle->n_parked) != 0; /* 2 in idle.h */
}

void tdt__idle_notify(struct tdt_rt *rt)
{
	struct tdt__idle *idle = &rt->idle;
	struct tdt__worker *worker = NULL;

	if (!wanted(idle))
		return;
	pthread_mutex_lock(&idle->lock);
	if (wanted(idle)) {
		worker = idle->parked;
		take_off(idle, worker);
		atomic_fetch_add(&idle->searching, 1); /* on its behalf, so that the next one sees it at once */
	}
	pthread_mutex_unlock(&idle->lock);
	if (worker != NULL)
		sem_post(&worker->wake);
}

/* --- Searchers -------------------------------------------------------------------- */

static bool anything(struct tdt_rt *rt)
{
	if (tdt__inject_length(&rt->inject) != 0)
		return true;
	for (unsigned i = 0; i < rt->n_workers; i++)
		if (!tdt__ring_is_empty(&rt->workers[i].ring))
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

void tdt__idle_park(struct tdt_rt *rt, struct tdt__worker *worker)
{
	struct tdt__idle *idle = &rt->idle;
	bool stays;

	pthread_mutex_lock(&idle->lock);
	if (atomic_load_explicit(&rt->stopping, memory_order_relaxed)) { /* it is set before the lock is taken */
		pthread_mutex_unlock(&idle->lock);
		return;
	}
	push(idle, worker);
	atomic_fetch_sub(&idle->searching, 1); /* 3 in idle.h */
	pthread_mutex_unlock(&idle->lock);

	if (anything(rt)) { /* 4 in idle.h */
		pthread_mutex_lock(&idle->lock);
		stays = !worker->parked; /* somebody has woken it already */
		if (!stays) {
			take_off(idle, worker);
			atomic_fetch_add(&idle->searching, 1);
		}
		pthread_mutex_unlock(&idle->lock);
		if (!stays)
			return;
	}
	tdt_worker_thread_park();
	tdt__wait(&worker->wake);
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
