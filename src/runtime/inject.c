// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The queue that all workers share. */

#include "runtime/inject.h"

#include "base/hold.h"
#include "runtime/task.h"

bool tdt__inject_push(struct tdt__inject *inject, struct tdt__task *first, struct tdt__task *last,
		      size_t n)
{
	TDT__HOLD(&inject->lock);
	if (inject->closed)
		return false; /* and tdt_rt_free() may use `next` */
	last->next = NULL;
	if (inject->first != NULL)
		inject->last->next = first;
	else
		inject->first = first;
	inject->last = last;
	atomic_fetch_add(&inject->length, n); /* sequentially consistent: 1 in idle.h */
	return true;
}

/* Take the newer part. */
static struct tdt__task *take_newer(struct tdt__inject *inject)
{
	struct tdt__task *first;

	TDT__HOLD(&inject->lock);
	first = inject->first;
	inject->first = NULL;
	return first;
}

struct tdt__task *tdt__inject_take(struct tdt__inject *inject, size_t n)
{
	struct tdt__task *first, **end = &first;
	size_t taken = 0;

	TDT__HOLD(&inject->older_lock);
	first = inject->older;
	if (first == NULL)
		first = take_newer(inject);
	for (; taken < n && *end != NULL; taken++)
		end = &(*end)->next;
	inject->older = *end;
	*end = NULL;
	/*
	 * Sequentially consistent, as in push.  Until then `length` is too high, which is
	 * harmless.
	 */
	atomic_fetch_sub(&inject->length, taken);
	return first;
}

struct tdt__task *tdt__inject_close(struct tdt__inject *inject)
{
	struct tdt__task *first, **end = &first;

	pthread_mutex_lock(&inject->older_lock);
	pthread_mutex_lock(&inject->lock);
	inject->closed = true;
	first = inject->older;
	while (*end != NULL)
		end = &(*end)->next;
	*end = inject->first;
	inject->first = inject->older = NULL;
	atomic_store(&inject->length, 0);
	pthread_mutex_unlock(&inject->lock);
	pthread_mutex_unlock(&inject->older_lock);
	return first;
}
