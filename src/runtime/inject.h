/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The queue that all workers share.  It holds the tasks that were woken on other threads, and those
 * for which a worker's own queue has no room.
 *
 * The queue has two parts, each with a lock.  A push appends tasks to the newer part.  A take
 * removes tasks from the older part; when that is empty, the newer part becomes the older one.  So
 * a push never waits for a take that walks a list which its processor has not cached yet.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct tdt__task;

/* All zero at first, but for the locks. */
struct tdt__inject {
	pthread_mutex_t lock;
	struct tdt__task *first, *last; /* the newer part; under `lock` */
	bool closed;			/* under `lock` */
	atomic_size_t length;		/* of both parts: see tdt__inject_length() */

	char apart[64];

	pthread_mutex_t older_lock; /* taken before `lock` */
	struct tdt__task *older;    /* the older part; under `older_lock` */
};

/*
 * Append `n` tasks, linked by `next` from `first` to `last`.  False: the queue is closed, and
 * nothing was done.
 */
bool tdt__inject_push(struct tdt__inject *inject, struct tdt__task *first, struct tdt__task *last,
		      size_t n);

/*
 * Take at most the first `n` tasks, and at least one unless the queue is empty.  Returns a list
 * linked by `next`, NULL at its end.
 */
struct tdt__task *tdt__inject_take(struct tdt__inject *inject, size_t n);

/* The number of tasks in the queue.  Sequentially consistent with pushes: idle.h says why. */
static inline size_t tdt__inject_length(struct tdt__inject *inject)
{
	return atomic_load(&inject->length);
}

/* Take all tasks, linked by `next`.  From then on every push fails. */
struct tdt__task *tdt__inject_close(struct tdt__inject *inject);
