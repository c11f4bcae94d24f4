/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A worker: a thread that polls tasks.  It takes tasks from its own queue; if this is empty, a
 * batch from the shared queue; if this is empty too, half of another worker's queue.  If there is
 * no task anywhere, it sleeps (idle.h).
 *
 * Every 61st time it looks into the shared queue first, and every 244th time it has a turn of the
 * driver.  Otherwise tasks that keep waking each other could keep it from the others for ever.
 */

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "runtime/run_queue.h"

struct tdt__task;
struct tdt_rt;

/*
 * The live tasks: all tasks that have been polled and have not ended.  tdt_rt_free() finds them in
 * these lists.  (Tasks that were never polled are in queues.)  Each worker has a list of the tasks
 * that were first polled on it, so another thread seldom needs the lock of the list.  A task that
 * ends in its first poll is never in a list.
 */
struct tdt__live {
	pthread_mutex_t lock;
	LIST_HEAD(, tdt__task) tasks; /* under `lock` */
};

struct tdt__worker {
	struct tdt__run_queue queue;

	/* Only the worker's own thread uses these. */
	unsigned turn;	 /* the polls left in this turn */
	unsigned polls;	 /* the number of polls so far; wraps */
	uint32_t random; /* the state of a generator; not 0 */

	/* Constant once the thread runs. */
	struct tdt_rt *rt;
	unsigned number;
	pthread_t thread; /* only the thread that starts and joins it uses this */

	struct tdt__live live;

	/* Parking: under the lock of struct tdt__idle. */
	LIST_ENTRY(tdt__worker) on_stack; /* of parked workers */
	bool parked;		   /* whether this worker is on the stack */
	bool drives;		   /* there: it sleeps in the driver's role, not on `wake` */
	sem_t wake;		   /* raised by the thread that takes it off the stack */
	uint32_t seen_head;	   /* the watchdog's: tdt__idle_look() */

	char apart[64]; /* keeps `head` of the next worker's queue, which thieves write, apart */
};

void tdt__worker_init(struct tdt__worker *worker, struct tdt_rt *rt, unsigned number);
void tdt__worker_fini(struct tdt__worker *worker);

/* Start the worker's thread.  Returns 0 or a negative errno. */
int tdt__worker_start(struct tdt__worker *worker);

/*
 * Put `task` of `rt`, whose state is SCHEDULED, into a queue.  On a worker of `rt` this is the
 * worker's own queue, on another thread the shared one.  False: the shared queue is closed, and
 * nothing was done.  The task may be gone on return.  `rt` is not gone, since the caller is a
 * worker of it, has a waker of the task, or got `rt` from the user.
 */
bool tdt__worker_schedule(struct tdt_rt *rt, struct tdt__task *task);

/* The worker has read the clock: its next turn begins. */
void tdt__worker_now(struct tdt__worker *worker, uint64_t ns);
