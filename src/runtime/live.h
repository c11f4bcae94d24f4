/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_LIVE_H
#define TDT_RUNTIME_LIVE_H

/*
 * The live tasks: all that were spawned and have not ended, so that tdt_rt_free() finds them.  Each worker has a list
 * of those that were spawned on it, whose lock is seldom wanted by another thread; a runtime has one more for those
 * spawned elsewhere.  Tasks are numbered in the order they were spawned, over all lists.
 */

#include <pthread.h>

struct tdt__task;

struct tdt__live {
	pthread_mutex_t lock;
	struct tdt__task *oldest, *newest; /* under `lock` */
};

void tdt__live_init(struct tdt__live *live);
void tdt__live_fini(struct tdt__live *live);

/* Add a task, the newest.  The caller has the lock. */
void tdt__live_add(struct tdt__live *live, struct tdt__task *task);

/* Take a task out of the list it is in. */
void tdt__live_remove(struct tdt__task *task);

/* Take all out of `live`, and put them into the chain `chain` (linked by `newer`), which is kept in order of number. */
struct tdt__task *tdt__live_take(struct tdt__live *live, struct tdt__task *chain);

#endif
