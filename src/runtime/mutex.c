// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The mutex, and the line of lock futures that wait for it.
 *
 * The line is a gate (gate.h) with one permit: an unlock hands the mutex over to the first future
 * in the line.  The pthread lock inside is held for a few instructions.
 */

#include <config.h>

#include "runtime/mutex.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/sync.h>
#include <tdt/trace.h>

#include "base/result.h"
#include "runtime/name.h"

struct tdt_mutex {
	/* It is written under `lock`; waiting tasks and dumps read it at any time. */
	struct tdt_lock head;
	pthread_mutex_t lock;  /* protects the owner, and what follows */
	struct tdt__gate gate; /* with a permit while the mutex is free */
	char *name;	       /* set before a task waits for the mutex; NULL: none */
};

struct tdt_mutex *tdt_mutex_new(void)
{
	struct tdt_mutex *mutex = calloc(1, sizeof(*mutex));

	if (mutex == NULL)
		return NULL;
	memcpy(mutex->head.magic, TDT_LOCK_MAGIC, sizeof(mutex->head.magic));
	pthread_mutex_init(&mutex->lock, NULL);
	tdt__gate_init(&mutex->gate, 1);
	return mutex;
}

void tdt_mutex_free(struct tdt_mutex *mutex)
{
	if (mutex == NULL)
		return;
	pthread_mutex_destroy(&mutex->lock);
	free(mutex->name);
	free(mutex);
}

int tdt_mutex_set_name(struct tdt_mutex *mutex, const char *name)
{
	if (mutex != NULL)
		return tdt__name_set(&mutex->name, name);
	return tdt__result(-EINVAL);
}

void tdt__mutex_report(const struct tdt_mutex *mutex)
{
	tdt_leaf_waits_on_lock(&mutex->head, mutex->name);
}

/*
 * Give the mutex to the first future in the line, or make it free.  Under the lock; returns the
 * waker to wake without it.
 */
static const struct tdt_waker *hand_over(struct tdt_mutex *mutex)
{
	struct tdt__gate_place *first = tdt__gate_first(&mutex->gate);

	if (first == NULL)
		tdt_lock_take(&mutex->head, 0);
	else
		tdt_lock_hand(&mutex->head, ((struct tdt__locking *)first)->task);
	return tdt__gate_admit(&mutex->gate);
}

/* Under the lock. */
static void note_taken(struct tdt_mutex *mutex, uint64_t task, const void *taken_at)
{
	__atomic_store_n(&mutex->head.taken_at, (uintptr_t)taken_at, __ATOMIC_RELAXED);
	tdt_lock_take(&mutex->head, task);
}

bool tdt__mutex_pass(struct tdt__locking *locking)
{
	struct tdt_mutex *mutex = locking->mutex;
	uint64_t task = tdt_current_task_id();
	bool holds;

	pthread_mutex_lock(&mutex->lock);
	locking->task = task;
	holds = tdt__gate_pass(&mutex->gate, &locking->leaf.place);
	if (holds)
		note_taken(mutex, task, locking->taken_at);
	pthread_mutex_unlock(&mutex->lock);
	return holds;
}

void tdt__mutex_leave(struct tdt__locking *locking)
{
	struct tdt_mutex *mutex = locking->mutex;
	const struct tdt_waker *waker = NULL;

	pthread_mutex_lock(&mutex->lock);
	if (tdt__gate_take_out(&locking->leaf.place))
		waker = hand_over(mutex);
	pthread_mutex_unlock(&mutex->lock);
	tdt_waker_wake(waker);
}

bool tdt_mutex_try_lock(struct tdt_mutex *mutex)
{
	uint64_t task = tdt_current_task_id();
	bool got;

	if (mutex == NULL) {
		errno = EINVAL;
		return false;
	}
	pthread_mutex_lock(&mutex->lock);
	got = mutex->gate.permits != 0;
	mutex->gate.permits = 0;
	if (got)
		note_taken(mutex, task, __builtin_return_address(0));
	pthread_mutex_unlock(&mutex->lock);
	return got;
}

int tdt_mutex_unlock(struct tdt_mutex *mutex)
{
	const struct tdt_waker *waker = NULL;
	bool held;

	if (mutex == NULL)
		return tdt__result(-EINVAL);
	pthread_mutex_lock(&mutex->lock);
	held = mutex->gate.permits == 0;
	if (held)
		waker = hand_over(mutex);
	pthread_mutex_unlock(&mutex->lock);
	tdt_waker_wake(waker);
	if (held)
		return 0;
	return tdt__result(-EPERM);
}
