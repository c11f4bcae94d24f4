// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The queue all workers share. */

#include <config.h>

#include "inject.h"
#include "task.h"

void tdt__inject_init(struct tdt__inject *inject)
{
	pthread_mutex_init(&inject->lock, NULL); /* a default one: this never fails */
	inject->first = inject->last = NULL;
	inject->closed = false;
	atomic_init(&inject->length, 0);
}

void tdt__inject_fini(struct tdt__inject *inject)
{
	pthread_mutex_destroy(&inject->lock);
}

/* Sequentially consistent: see idle.h. */
static void set_length(struct tdt__inject *inject, size_t length)
{
	atomic_store(&inject->length, length);
}

static size_t own_length(struct tdt__inject *inject)
{
	return atomic_load_explicit(&inject->length, memory_order_relaxed); /* under the lock */
}

void tdt__inject_push(struct tdt__inject *inject, struct tdt__task *first, struct tdt__task *last, size_t n)
{
	pthread_mutex_lock(&inject->lock);
	if (!inject->closed) {
		last->next = NULL;
		if (inject->last != NULL)
			inject->last->next = first;
		else
			inject->first = first;
		inject->last = last;
		set_length(inject, own_length(inject) + n);
	}
	pthread_mutex_unlock(&inject->lock);
}

struct tdt__task *tdt__inject_take(struct tdt__inject *inject, size_t n)
{
	struct tdt__task *first, **end = &first;
	size_t length;

	pthread_mutex_lock(&inject->lock);
	first = inject->first;
	length = own_length(inject);
	if (n > length)
		n = length;
	for (size_t i = 0; i < n; i++)
		end = &(*end)->next;
	inject->first = *end;
	*end = NULL;
	if (inject->first == NULL)
		inject->last = NULL;
	set_length(inject, length - n);
	pthread_mutex_unlock(&inject->lock);
	return first;
}

void tdt__inject_close(struct tdt__inject *inject)
{
	pthread_mutex_lock(&inject->lock);
	inject->closed = true;
	inject->first = inject->last = NULL;
	set_length(inject, 0);
	pthread_mutex_unlock(&inject->lock);
}
