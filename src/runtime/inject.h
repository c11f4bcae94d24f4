/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_INJECT_H
#define TDT_RUNTIME_INJECT_H

/*
 * The queue all workers share: for tasks woken on other threads, and for what a worker's own queue has no room for.
 *
 * It has two parts, each with a lock: who puts a task in appends it to the newer part; who takes some takes them from
 * the older part, and makes the newer one the older when that is empty.  So nobody who puts one in waits while somebody
 * goes through a list of tasks that none of his processor's caches has yet.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct tdt__task;

struct tdt__inject {
	pthread_mutex_t lock;
	struct tdt__task *first, *last; /* the newer part; under `lock` */
	bool closed;			/* under `lock` */
	atomic_size_t length;		/* of both parts: see tdt__inject_length() */

	char apart[64];

	pthread_mutex_t older_lock; /* taken before `lock` */
	struct tdt__task *older;    /* the older part; under `older_lock` */
};

void tdt__inject_init(struct tdt__inject *inject);
void tdt__inject_fini(struct tdt__inject *inject);

/* Put the `n` tasks from `first` to `last`, linked by `next`, last.  False: it is closed, and nothing was done. */
bool tdt__inject_push(struct tdt__inject *inject, struct tdt__task *first, struct tdt__task *last, size_t n);

/* Take the first `n` tasks, or fewer, but one if there is any: a list linked by `next`, NULL at its end. */
struct tdt__task *tdt__inject_take(struct tdt__inject *inject, size_t n);

/* How many there are.  Sequentially consistent with pushes: idle.h tells why. */
static inline size_t tdt__inject_length(struct tdt__inject *inject)
{
	return atomic_load(&inject->length);
}

/* Take all that is in it, linked by `next`, and nothing gets in from then on. */
struct tdt__task *tdt__inject_close(struct tdt__inject *inject);

#endif
