// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The lists of live tasks. */

#include <config.h>

#include "live.h"
#include "task.h"

void tdt__live_init(struct tdt__live *live)
{
	pthread_mutex_init(&live->lock, NULL); /* a default one: this never fails */
	live->oldest = live->newest = NULL;
}

void tdt__live_fini(struct tdt__live *live)
{
	pthread_mutex_destroy(&live->lock);
}

void tdt__live_add(struct tdt__live *live, struct tdt__task *task)
{
	task->live = live;
	task->newer = NULL;
	task->older = live->newest;
	if (live->newest != NULL)
		live->newest->newer = task;
	else
		live->oldest = task;
	live->newest = task;
}

void tdt__live_remove(struct tdt__task *task)
{
	struct tdt__live *live = task->live;

	pthread_mutex_lock(&live->lock);
	if (task->older != NULL)
		task->older->newer = task->newer;
	else
		live->oldest = task->newer;
	if (task->newer != NULL)
		task->newer->older = task->older;
	else
		live->newest = task->older;
	pthread_mutex_unlock(&live->lock);
}

struct tdt__task *tdt__live_take(struct tdt__live *live, struct tdt__task *chain)
{
	struct tdt__task *taken, *merged = NULL, **end = &merged;

	pthread_mutex_lock(&live->lock);
	taken = live->oldest;
	live->oldest = live->newest = NULL;
	pthread_mutex_unlock(&live->lock);
	while (taken != NULL && chain != NULL) {
		struct tdt__task **first = taken->number < chain->number ? &taken : &chain;

		*end = *first;
		end = &(*first)->newer;
		*first = *end;
	}
	*end = taken != NULL ? taken : chain;
	return merged;
}
