/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_WORKER_H
#define TDT_RUNTIME_WORKER_H

/*
 * A worker: a thread that polls tasks.  It takes them from its own queue; when that is empty, a batch from the shared
 * one; when that is empty too, half of another worker's; and when there is none it sleeps (idle.h).
 *
 * Every 61st time it looks into the shared one first, lest tasks that keep waking each other shut out those there.
 */

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>

#include "runtime/live.h"
#include "runtime/ring.h"

struct tdt__task;
struct tdt_rt;

struct tdt__worker {
	struct tdt__ring ring;

	/* Its own thread's. */
	unsigned turn;	 /* polls left in this turn */
	unsigned polls;	 /* how many there were; wraps */
	uint32_t random; /* the state of a generator; not 0 */

	/* Constant once the thread runs. */
	struct tdt_rt *rt;
	unsigned number;
	pthread_t thread; /* of who starts and joins it */

	struct tdt__live live; /* the tasks that were first polled here */

	/* Parking: under the lock of struct tdt__idle. */
	struct tdt__worker *below; /* on the stack of parked workers */
	bool parked;		   /* whether it is on it */
	sem_t wake;		   /* raised by who takes it off */

	char apart[64]; /* from what other threads write in the next one: its `head` */
};

void tdt__worker_init(struct tdt__worker *worker, struct tdt_rt *rt, unsigned number);
void tdt__worker_fini(struct tdt__worker *worker);

/* Start its thread.  0 or a negative errno. */
int tdt__worker_start(struct tdt__worker *worker);

/*
 * Put `task` of `rt`, which is scheduled, into a queue: on a worker of `rt` into that one's, else into the shared one.
 * False: that one is closed, and nothing was done.  The task may be gone on return; `rt` is not, since the caller is
 * its worker, has a waker of the task, or was given it.
 */
bool tdt__worker_schedule(struct tdt_rt *rt, struct tdt__task *task);

/* Tell workers of the tasks that this thread, a driver's, has woken while it gathered them. */
void tdt__worker_tell_gathered(void);

#endif
