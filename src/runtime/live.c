// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The lists of live tasks (live.h). */

#include <config.h>

#include "runtime/live.h"
#include "runtime/task.h"

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
	pthread_mutex_lock(&live->lock);
	task->live = live;
	task->newer = NULL;
	task->older = live->newest;
	if (live->newest != NULL)
		live->newest->newer = task;
	else
		live->oldest = task;
	live->newest = task;
	pthread_mutex_unlock(&live->lock);
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
	pthread_mutex_lock(&live->lock);
	if (live->newest != NULL) {
		live->newest->newer = chain;
		chain = live->oldest;
	}
	live->oldest = live->newest = NULL;
	pthread_mutex_unlock(&live->lock);
	return chain;
}

static struct tdt__task *merge(struct tdt__task *one, struct tdt__task *other)
{
	struct tdt__task *merged, **end = &merged;

	while (one != NULL && other != NULL) {
		struct tdt__task **first = one->number < other->number ? &one : &other;

		*end = *first;
		end = &(*first)->newer;
		*first = *end;
	}
	*end = one != NULL ? one : other;
	return merged;
}

struct tdt__task *tdt__live_sort(struct tdt__task *chain)
{
	/* sorted[i] is NULL or a sorted chain of 2^i tasks. */
	struct tdt__task *sorted[64] = { NULL }, *merged = NULL;

	while (chain != NULL) {
		struct tdt__task *some = chain;
		int i = 0;

		chain = chain->newer;
		some->newer = NULL;
		for (; sorted[i] != NULL; i++) {
			some = merge(sorted[i], some);
			sorted[i] = NULL;
		}
		sorted[i] = some;
	}
	for (int i = 0; i < 64; i++)
		merged = merge(sorted[i], merged);
	return merged;
}
