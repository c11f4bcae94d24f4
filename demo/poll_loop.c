// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A thread, a future, and the waker that connects them.  The waker is the loop's first member, and a clone of it one
 * more reference to the loop.  So clones may outlive the thread and the future; waking them does nothing then.
 */

#include "poll_loop.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct poll_loop {
	struct tdt_waker waker;
	atomic_uint refs; /* who started it, and every clone of the waker */
	struct tdt_future future;
	pthread_t thread;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	bool woken;
	bool stopped;
};

static struct poll_loop *loop_of(const struct tdt_waker *waker)
{
	return (struct poll_loop *)(uintptr_t)waker;
}

static const struct tdt_waker *clone_waker(const struct tdt_waker *waker)
{
	atomic_fetch_add(&loop_of(waker)->refs, 1);
	return waker;
}

static void drop_waker(const struct tdt_waker *waker)
{
	struct poll_loop *loop = loop_of(waker);

	if (atomic_fetch_sub(&loop->refs, 1) == 1)
		free(loop);
}

static void wake_by_ref(const struct tdt_waker *waker)
{
	struct poll_loop *loop = loop_of(waker);

	pthread_mutex_lock(&loop->lock);
	loop->woken = true;
	pthread_cond_signal(&loop->changed);
	pthread_mutex_unlock(&loop->lock);
}

static void wake(const struct tdt_waker *waker)
{
	wake_by_ref(waker);
	drop_waker(waker);
}

static const struct tdt_waker_vtable waker_vtable = { clone_waker, wake, wake_by_ref, drop_waker };

/* Sleep until the future is to be polled (true), or the loop to end (false). */
static bool wait_for_wake(struct poll_loop *loop)
{
	bool go_on;

	pthread_mutex_lock(&loop->lock);
	while (!loop->woken && !loop->stopped)
		pthread_cond_wait(&loop->changed, &loop->lock);
	loop->woken = false;
	go_on = !loop->stopped;
	pthread_mutex_unlock(&loop->lock);
	return go_on;
}

static void *run(void *argument)
{
	struct poll_loop *loop = argument;
	struct tdt_context cx = { &loop->waker };

	while (wait_for_wake(loop) && tdt_future_poll(&loop->future, &cx) == TDT_PENDING)
		;
	tdt_future_drop(&loop->future);
	return NULL;
}

struct poll_loop *poll_loop_start(struct tdt_future future)
{
	struct poll_loop *loop = malloc(sizeof(*loop));
	int error;

	if (loop == NULL)
		return NULL;
	*loop = (struct poll_loop){ .waker = { &waker_vtable },
				    .refs = 1,
				    .future = future,
				    .lock = PTHREAD_MUTEX_INITIALIZER,
				    .changed = PTHREAD_COND_INITIALIZER,
				    .woken = true }; /* the first poll needs no wake */
	error = pthread_create(&loop->thread, NULL, run, loop);
	if (error != 0) {
		drop_waker(&loop->waker);
		errno = error;
		return NULL;
	}
	return loop;
}

void poll_loop_stop(struct poll_loop *loop)
{
	if (loop == NULL)
		return;
	pthread_mutex_lock(&loop->lock);
	loop->stopped = true;
	pthread_cond_signal(&loop->changed);
	pthread_mutex_unlock(&loop->lock);
	pthread_join(loop->thread, NULL);
	drop_waker(&loop->waker);
}
