/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_LIVE_H
#define TDT_RUNTIME_LIVE_H

/*
 * The live tasks: all that have been polled and not ended, so that tdt_rt_free() finds them.  (Those that were never
 * polled are in queues.)  Each worker has a list of those that were first polled on it, whose lock is seldom wanted by
 * another thread.  A task that ends in its first poll was never in one.
 */

#include <pthread.h>

struct tdt__task;

struct tdt__live {
	pthread_mutex_t lock;
	struct tdt__task *oldest, *newest; /* under `lock` */
};

void tdt__live_init(struct tdt__live *live);
void tdt__live_fini(struct tdt__live *live);

/* Add a task. */
void tdt__live_add(struct tdt__live *live, struct tdt__task *task);

/* Take a task out of the list it is in. */
void tdt__live_remove(struct tdt__task *task);

/* Take all out of `live`, and put them before the chain `chain` (linked by `newer`). */
struct tdt__task *tdt__live_take(struct tdt__live *live, struct tdt__task *chain);

/* Put a chain into the order in which its tasks were spawned. */
struct tdt__task *tdt__live_sort(struct tdt__task *chain);

#endif
