/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_INJECT_H
#define TDT_RUNTIME_INJECT_H

/* The queue all workers share: for tasks woken on other threads, and for what a worker's own queue has no room for. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct tdt__task;

struct tdt__inject {
	pthread_mutex_t lock;
	struct tdt__task *first, *last; /* under `lock` */
	bool closed;			/* under `lock` */
	atomic_size_t length;		/* written under `lock`; a guess to who has it not */
};

void tdt__inject_init(struct tdt__inject *inject);
void tdt__inject_fini(struct tdt__inject *inject);

/* Put the `n` tasks from `first` to `last`, linked by `next`, last.  After tdt__inject_close() nothing happens. */
void tdt__inject_push(struct tdt__inject *inject, struct tdt__task *first, struct tdt__task *last, size_t n);

/* Take the first `n` tasks, or all if there are fewer: a list linked by `next`, NULL at its end. */
struct tdt__task *tdt__inject_take(struct tdt__inject *inject, size_t n);

/* How many there are.  Sequentially consistent with pushes: idle.h tells why. */
static inline size_t tdt__inject_length(struct tdt__inject *inject)
{
	return atomic_load(&inject->length);
}

/* Forget all that is in it, and what comes. */
void tdt__inject_close(struct tdt__inject *inject);

#endif
