// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Parking workers, and waking them. */

#include "runtime/idle.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>

#include "base/hold.h"
#include "runtime/driver.h"
#include "runtime/rt.h"

/* --- The stack; the caller has the lock ------------------------------------- */

static void push_worker(struct tdt__idle *idle, struct tdt__worker *worker)
{
	LIST_INSERT_HEAD(&idle->parked, worker, on_stack);
	worker->parked = true;
	atomic_fetch_add(&idle->n_parked, 1); /* sequentially consistent: 3 in idle.h */
}

static void take_off(struct tdt__idle *idle, struct tdt__worker *worker)
{
	LIST_REMOVE(worker, on_stack);
	worker->parked = false;
	atomic_fetch_sub(&idle->n_parked, 1); /* 1 in driver.h */
}

/*
 * Take a worker off the stack, and wake it.  The alarm is rung under the lock, because the driver
 * is stopped, and the alarm closed, as soon as no worker is on the stack.
 */
static void wake_worker(struct tdt_rt *rt, struct tdt__worker *worker)
{
	take_off(&rt->idle, worker);
	if (worker->drives)
		tdt__driver_ring(rt->driver);
	else
		sem_post(&worker->wake);
}

/* Have one of the parked workers search.  Another worker is woken before the one in the role. */
static void wake_one(struct tdt_rt *rt)
{
	struct tdt__idle *idle = &rt->idle;
	struct tdt__worker *worker = LIST_FIRST(&idle->parked);

	if (worker->drives && LIST_NEXT(worker, on_stack) != NULL)
		worker = LIST_NEXT(worker, on_stack);
	/* On behalf of the worker, so that the next call of wanted() sees a searcher. */
	atomic_fetch_add(&idle->searching, 1);
	wake_worker(rt, worker);
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

	if (!wanted(idle))
		return;
	TDT__HOLD(&idle->lock);
	if (wanted(idle))
		wake_one(rt);
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
	TDT__HOLD(&idle->lock);
	if (!worker->parked)
		return false;
	take_off(idle, worker);
	atomic_fetch_add(&idle->searching, 1);
	return true;
}

/* Put the worker on the stack.  False: the runtime stops. */
static bool lie_down(struct tdt_rt *rt, struct tdt__worker *worker)
{
	struct tdt__idle *idle = &rt->idle;

	TDT__HOLD(&idle->lock);
	/*
	 * Relaxed: if this misses a stop, tdt__idle_stop() takes the lock later, and wakes the
	 * worker.
	 */
	if (atomic_load_explicit(&rt->stopping, memory_order_relaxed))
		return false;
	push_worker(idle, worker);
	atomic_fetch_sub(&idle->searching, 1); /* 3 in idle.h */
	return true;
}

static void sleep_on_semaphore(struct tdt_rt *rt, struct tdt__worker *worker)
{
	if (tdt__driver_rests(rt->driver) || !get_up(&rt->idle, worker)) {
		tdt_worker_thread_park();
		TEMP_FAILURE_RETRY(sem_wait(&worker->wake));
		tdt_worker_thread_unpark();
		worker->turn = 0; /* a turn in the role before may have told the time */
	}
	tdt__driver_watch(rt->driver);
}

/* A turn whose events are there: the tasks that it wakes go to the worker's own queue. */
static void end_turn(struct tdt_rt *rt, struct tdt__worker *worker, struct tdt__turn *turn)
{
	tdt__worker_now(worker, turn->now_ns);
	tdt__turn_deal(rt->driver, turn);
	tdt__driver_leave(rt->driver);
}

/* Sleep in the driver's role.  Another thread that takes the worker off the stack rings. */
static void sleep_in_role(struct tdt_rt *rt, struct tdt__worker *worker)
{
	struct tdt__turn turn;

	tdt_worker_thread_park();
	tdt__turn_wait(rt->driver, &turn, true);
	tdt_worker_thread_unpark();
	get_up(&rt->idle, worker);
	tdt__driver_watch(rt->driver);
	end_turn(rt, worker, &turn);
	if (turn.n_others != 0) {
		tdt__idle_found(rt); /* while it runs foreign code, this worker does not search */
		tdt__turn_end(&turn);
		tdt__idle_search(rt);
	}
}

void tdt__idle_park(struct tdt_rt *rt, struct tdt__worker *worker)
{
	bool drives = tdt__driver_enter(rt->driver, TDT__WORKER), stays;

	worker->drives = drives;
	stays = lie_down(rt, worker) &&
		!(anything(rt) && get_up(&rt->idle, worker)); /* 4 in idle.h */
	if (stays && drives) {
		sleep_in_role(rt, worker);
	} else if (stays) {
		sleep_on_semaphore(rt, worker);
	} else {
		if (drives)
			tdt__driver_leave(rt->driver);
		tdt__driver_watch(rt->driver);
	}
}

void tdt__idle_glance(struct tdt_rt *rt, struct tdt__worker *worker)
{
	struct tdt__turn turn;

	if (!tdt__driver_enter(rt->driver, TDT__WORKER))
		return;
	tdt__turn_wait(rt->driver, &turn, false);
	end_turn(rt, worker, &turn);
	if (turn.n_woken != 0 && !tdt__run_queue_is_empty(&worker->queue))
		tdt__idle_notify(rt);
	tdt__turn_end(&turn);
}

/* --- The watchdog ------------------------------------------------------------------ */

bool tdt__idle_all_parked(struct tdt_rt *rt)
{
	return atomic_load(&rt->idle.n_parked) == rt->n_workers; /* 4 in driver.h */
}

bool tdt__idle_offer(struct tdt_rt *rt)
{
	TDT__HOLD(&rt->idle.lock);
	if (LIST_EMPTY(&rt->idle.parked))
		return false;
	wake_one(rt);
	return true;
}

void tdt__idle_look(struct tdt_rt *rt)
{
	bool left = false;

	for (unsigned i = 0; i < rt->n_workers; i++)
		left |= tdt__run_queue_is_left(&rt->workers[i].queue, &rt->workers[i].seen_head);
	if (left)
		tdt__idle_notify(rt);
}

void tdt__idle_stop(struct tdt_rt *rt)
{
	struct tdt__worker *worker;

	TDT__HOLD(&rt->idle.lock);
	while ((worker = LIST_FIRST(&rt->idle.parked)) != NULL)
		wake_worker(rt, worker);
}
