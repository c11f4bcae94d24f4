// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Semaphores and notifications: all calls but those that wait (gate_futures.c). */

#include <config.h>

#include "runtime/semaphore.h"

#include <errno.h>
#include <stdlib.h>

#include <tdt/rt/sync.h>

#include "base/result.h"
#include "runtime/name.h"

struct tdt_semaphore *tdt_semaphore_new(size_t permits)
{
	struct tdt_semaphore *semaphore = calloc(1, sizeof *semaphore);

	if (semaphore == NULL)
		return NULL;
	pthread_mutex_init(&semaphore->lock, NULL);
	tdt__gate_init(&semaphore->gate, permits);
	return semaphore;
}

int tdt_semaphore_set_name(struct tdt_semaphore *semaphore, const char *name)
{
	if (semaphore != NULL)
		return tdt__name_set(&semaphore->name, name);
	return tdt__result(-EINVAL);
}

void tdt_semaphore_free(struct tdt_semaphore *semaphore)
{
	if (semaphore == NULL)
		return;
	pthread_mutex_destroy(&semaphore->lock);
	free(semaphore->name);
	free(semaphore);
}

bool tdt_semaphore_try_acquire(struct tdt_semaphore *semaphore)
{
	bool got;

	if (semaphore == NULL) {
		errno = EINVAL;
		return false;
	}
	pthread_mutex_lock(&semaphore->lock);
	got = semaphore->gate.permits != 0;
	semaphore->gate.permits -= got;
	pthread_mutex_unlock(&semaphore->lock);
	return got;
}

int tdt_semaphore_release(struct tdt_semaphore *semaphore)
{
	const struct tdt_waker *waker;

	if (semaphore == NULL)
		return tdt__result(-EINVAL);
	pthread_mutex_lock(&semaphore->lock);
	waker = tdt__gate_admit(&semaphore->gate);
	pthread_mutex_unlock(&semaphore->lock);
	tdt_waker_wake(waker);
	return 0;
}

/* --- Notifications: a semaphore without permits ----------------------------------- */

struct tdt_notify *tdt_notify_new(void)
{
	return (struct tdt_notify *)tdt_semaphore_new(0);
}

int tdt_notify_set_name(struct tdt_notify *notify, const char *name)
{
	return tdt_semaphore_set_name((struct tdt_semaphore *)notify, name);
}

void tdt_notify_free(struct tdt_notify *notify)
{
	tdt_semaphore_free((struct tdt_semaphore *)notify);
}

int tdt_notify_one(struct tdt_notify *notify)
{
	struct tdt_semaphore *ours = (struct tdt_semaphore *)notify;
	const struct tdt_waker *waker = NULL;

	if (ours == NULL)
		return tdt__result(-EINVAL);
	pthread_mutex_lock(&ours->lock);
	if (ours->gate.permits == 0)
		waker = tdt__gate_admit(&ours->gate);
	pthread_mutex_unlock(&ours->lock);
	tdt_waker_wake(waker);
	return 0;
}

int tdt_notify_all(struct tdt_notify *notify)
{
	struct tdt_semaphore *ours = (struct tdt_semaphore *)notify;
	struct tdt__gate present;
	const struct tdt_waker *waker;
	bool more;

	if (ours == NULL)
		return tdt__result(-EINVAL);
	/* Those who wait now: a leaf that is woken may wait again before the last one is woken. */
	tdt__gate_init(&present, 0);
	pthread_mutex_lock(&ours->lock);
	tdt__gate_move(&ours->gate, &present);
	pthread_mutex_unlock(&ours->lock);
	do {
		pthread_mutex_lock(&ours->lock);
		waker = NULL;
		tdt__gate_release(&present, &waker);
		more = tdt__gate_first(&present) != NULL;
		pthread_mutex_unlock(&ours->lock);
		/* A task that is woken as the last one may free the notification. */
		tdt_waker_wake(waker);
	} while (more);
	return 0;
}
