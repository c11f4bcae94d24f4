/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_IDLE_H
#define TDT_RUNTIME_IDLE_H

/*
 * Workers with nothing to do: how they come to sleep, and who wakes them.
 *
 * A worker that has run dry *searches*: it looks into the other workers' queues.  If it finds nothing it goes on the
 * stack of parked workers and sleeps in the kernel.  Who puts a task into a queue wakes one parked worker, which then
 * searches, unless one searches already: that one will find the task, or see it when it looks again.  So a burst of
 * tasks wakes one worker, not all.  That one, when it has found something, wakes the next if there is more: so all come
 * to work while there is work for them.
 *
 * No task is left lying while a worker sleeps:
 *
 *   who puts a task into a queue            a worker about to sleep
 *     1. puts it there                        3. puts itself on the stack, and searches no more
 *     2. does nobody search, and is           4. looks into all queues: anything?  Then off the stack, and search
 *        somebody parked?  Wakes one
 *
 *   who puts a task into a queue            the last searcher, which has found another task
 *     1. puts it there                        3. searches no more
 *     2. as above                             4. looks into all queues: anything?  Then wakes a parked worker
 *
 * A task that is woken in a poll, and is alone in its worker's queue, is polled next there: to wake another worker for
 * it would cost more than the poll, and two tasks that wake each other in turn would do it all the time.  But should
 * the poll go on for long, or block, the task would be held up.  So one of the parked workers, the *lookout*, sleeps
 * for LOOKOUT_MS at most while there is one that isn't parked, and looks around then.  As long as there is a lookout,
 * no worker is woken for such a task.
 *
 *   who puts a lone task into its queue     the lookout
 *     1. puts it there                        3. isn't it any more: it was woken, or all others are parked
 *     2. is there a lookout?                  4. looks into all queues: when it searches, as above; or, if it
 *        Then that will do                       goes on sleeping, at once
 *
 * So in a runtime with nothing to do no worker wakes; in one that works, the lookout does, 100 times a second.
 *
 * All of 1 to 4 are sequentially consistent (`tail` of a ring, `length` of the shared queue; `searching`, `n_parked`,
 * `lookout`), so if 2 does not see what 3 did, 4 sees what 1 did.
 */

#include <pthread.h>
#include <stdatomic.h>

struct tdt__worker;
struct tdt_rt;

struct tdt__idle {
	pthread_mutex_t lock;
	struct tdt__worker *parked; /* the stack; under `lock` */
	atomic_uint n_parked;	    /* how many are on it; written under `lock` */
	atomic_uint searching;	    /* workers that search, or were woken to */

	struct tdt__worker *_Atomic lookout; /* a parked worker, or NULL; written under `lock` */
};

void tdt__idle_init(struct tdt__idle *idle);
void tdt__idle_fini(struct tdt__idle *idle);

/* A task was put into a queue of `rt`. */
void tdt__idle_notify(struct tdt_rt *rt);

/* The same for a task that is alone in the queue of the worker that this thread is. */
void tdt__idle_notify_lone(struct tdt_rt *rt);

/* This worker searches from now on. */
void tdt__idle_search(struct tdt_rt *rt);

/* This worker, which searched, has found something. */
void tdt__idle_found(struct tdt_rt *rt);

/* This worker, which searched, has found nothing: sleep until there may be something, and search again. */
void tdt__idle_park(struct tdt_rt *rt, struct tdt__worker *worker);

/* Wake all workers, since `rt->stopping` was set. */
void tdt__idle_stop(struct tdt_rt *rt);

#endif
