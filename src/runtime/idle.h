/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Workers with nothing to do: how they go to sleep, and which thread wakes them.
 *
 * A worker whose own queue and the shared queue are empty *searches*: it looks into the other
 * workers' queues.  If it finds nothing, it goes on the stack of parked workers and sleeps in the
 * kernel.  A thread that puts a task into a queue (the *producer*) wakes one parked worker, which
 * then searches.  The producer wakes none if a worker searches already: the searcher will find the
 * task, or see it when it looks again.  So a burst of tasks wakes one worker, not all.  When that
 * worker has found a task, it wakes the next worker if there are more tasks.  So all workers come
 * to work as long as there is work for them.
 *
 * No task waits in a queue while a worker sleeps:
 *
 *   the producer                            a worker that is about to sleep
 *     1. puts the task into a queue           3. puts itself on the stack, and stops searching
 *     2. if no worker searches and one        4. looks into all queues; if there is a task, leaves
 *        is parked, wakes that one               the stack, and searches
 *
 *   the producer                            the last searcher, which has found another task
 *     1. puts the task into a queue           3. stops searching
 *     2. as above                             4. looks into all queues; if there is a task, wakes a
 *                                                parked worker
 *
 * A task that is woken during a poll on a worker, and is alone in this worker's queue, will be
 * polled there next.  To wake another worker for it would cost more than the poll, and two tasks
 * that wake each other in turn would cause that all the time.  So no worker is woken for a *lone*
 * task.  If the present poll takes long or blocks, the driver's watchdog sees at its second look
 * that the worker has taken no task out of its queue since the first, and wakes a parked worker.
 * The watchdog looks as long as any worker is not parked (driver.h); the worker that put the task
 * into its queue is not.
 *
 * One of the parked workers may sleep in the driver's role (driver.h) instead of on its semaphore.
 * It is the last to be taken off the stack.  When it has an event, it leaves the stack, which makes
 * it a searcher, and finds the tasks that it woke in its own queue.
 *
 * All accesses in steps 1 to 4 are sequentially consistent (`tail` of a ring, `length` of the
 * shared queue; `searching`, `n_parked`), so if 2 does not see what 3 did, 4 sees what 1 did.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

struct tdt__worker;
struct tdt_rt;

/* All zero at first, but for the lock. */
struct tdt__idle {
	pthread_mutex_t lock;
	LIST_HEAD(, tdt__worker) parked; /* the stack; under `lock` */
	atomic_uint n_parked;	    /* the number of workers on it; written under `lock` */
	atomic_uint searching;	    /* workers that search, or were woken to search */
};

/* Call this after putting a task into a queue of `rt`. */
void tdt__idle_notify(struct tdt_rt *rt);

/* The calling worker begins to search. */
void tdt__idle_search(struct tdt_rt *rt);

/* The calling worker has searched and found a task. */
void tdt__idle_found(struct tdt_rt *rt);

/*
 * `worker`, the calling one, has searched in vain: sleep until there may be a task, then search
 * again.
 */
void tdt__idle_park(struct tdt_rt *rt, struct tdt__worker *worker);

/* Have a turn of the driver, without sleeping, unless another thread is in its role. */
void tdt__idle_glance(struct tdt_rt *rt, struct tdt__worker *worker);

/* For the watchdog: whether all workers are parked. */
bool tdt__idle_all_parked(struct tdt_rt *rt);

/* For the watchdog: wake a parked worker, which may take the driver's role.  False: none is. */
bool tdt__idle_offer(struct tdt_rt *rt);

/* For the watchdog: wake a parked worker if another one has left its tasks since the last look. */
void tdt__idle_look(struct tdt_rt *rt);

/* Wake all parked workers after `rt->stopping` was set. */
void tdt__idle_stop(struct tdt_rt *rt);
