/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The live tasks: all tasks that have been polled and have not ended.  tdt_rt_free() finds them in
 * these lists.  (Tasks that were never polled are in queues.)  Each worker has a list of the tasks
 * that were first polled on it, so another thread seldom needs the lock of the list.  A task that
 * ends in its first poll is never in a list.
 */

#include <pthread.h>

struct tdt__task;

struct tdt__live {
	pthread_mutex_t lock;
	struct tdt__task *oldest, *newest; /* under `lock` */
};

void tdt__live_init(struct tdt__live *live);
void tdt__live_fini(struct tdt__live *live);

void tdt__live_add(struct tdt__live *live, struct tdt__task *task);

/* Take `task` out of its list. */
void tdt__live_remove(struct tdt__task *task);

/* Take all tasks out of `live`, and return them followed by `chain`, all linked by `newer`. */
struct tdt__task *tdt__live_take(struct tdt__live *live, struct tdt__task *chain);

/* Sort a chain by the order in which its tasks were spawned. */
struct tdt__task *tdt__live_sort(struct tdt__task *chain);
