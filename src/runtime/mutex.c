// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The mutex, and the line of lock futures that wait for it.
 *
 * An unlock hands the mutex over to the first future in the line.  So the mutex is never free
 * while a future waits, no later caller can overtake the line, and only one task is woken.  A
 * place in the line is the lock future's own memory: waiting allocates nothing.
 *
 * The pthread lock inside is held for a few instructions.  Wakers are taken out of their slots
 * under this lock, and are woken after it is released.
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
	pthread_mutex_t lock; /* protects the owner, all below, and the places in the line */
	bool held;
	char *name; /* set before a task waits for the mutex; NULL: none */
	/*
	 * The head of a ring: `next` is the first place, `previous` the last.  Both are the head
	 * itself if no future waits.
	 */
	struct tdt__lock_place line;
};

struct tdt_mutex *tdt_mutex_new(void)
{
	struct tdt_mutex *mutex = calloc(1, sizeof(*mutex));

	if (mutex == NULL)
		return NULL;
	memcpy(mutex->head.magic, TDT_LOCK_MAGIC, sizeof(mutex->head.magic));
	pthread_mutex_init(&mutex->lock, NULL);
	mutex->line.previous = mutex->line.next = &mutex->line;
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

static void append_place(struct tdt_mutex *mutex, struct tdt__lock_place *place)
{
	place->at = TDT__IN_LINE;
	place->next = &mutex->line;
	place->previous = mutex->line.previous;
	place->previous->next = place;
	mutex->line.previous = place;
}

static void take_out(struct tdt__lock_place *place)
{
	place->previous->next = place->next;
	place->next->previous = place->previous;
}

/*
 * Give the mutex to the first place in the line, or make it free.  Returns the waker to wake once
 * the caller has released the lock.
 */
static const struct tdt_waker *hand_over(struct tdt_mutex *mutex)
{
	struct tdt__lock_place *first = mutex->line.next;

	if (first == &mutex->line) {
		mutex->held = false;
		tdt_lock_take(&mutex->head, 0);
		return NULL;
	}
	tdt_lock_hand(&mutex->head, first->task);
	take_out(first);
	first->at = TDT__HOLDS;
	return tdt__slot_take(&first->slot);
}

/* Under the lock. */
static void note_taken(struct tdt_mutex *mutex, uint64_t task, const void *taken_at)
{
	__atomic_store_n(&mutex->head.taken_at, (uintptr_t)taken_at, __ATOMIC_RELAXED);
	tdt_lock_take(&mutex->head, task);
}

bool tdt__lock_place_take(struct tdt__lock_place *place)
{
	struct tdt_mutex *mutex = place->mutex;
	uint64_t task = tdt_current_task_id();
	bool holds;

	pthread_mutex_lock(&mutex->lock);
	place->task = task;
	if (place->at == TDT__OUTSIDE && mutex->held) {
		append_place(mutex, place);
	} else if (place->at == TDT__OUTSIDE) {
		mutex->held = true;
		place->at = TDT__HOLDS;
	}
	holds = place->at == TDT__HOLDS;
	if (holds)
		note_taken(mutex, task, place->taken_at);
	pthread_mutex_unlock(&mutex->lock);
	return holds;
}

void tdt__lock_place_leave(struct tdt__lock_place *place)
{
	struct tdt_mutex *mutex = place->mutex;
	const struct tdt_waker *waker = NULL;

	pthread_mutex_lock(&mutex->lock);
	if (place->at == TDT__IN_LINE)
		take_out(place);
	else if (place->at == TDT__HOLDS)
		waker = hand_over(mutex);
	place->at = TDT__OUTSIDE;
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
	got = !mutex->held;
	mutex->held = true;
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
	held = mutex->held;
	if (held)
		waker = hand_over(mutex);
	pthread_mutex_unlock(&mutex->lock);
	tdt_waker_wake(waker);
	if (held)
		return 0;
	return tdt__result(-EPERM);
}
