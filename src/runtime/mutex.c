// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Mutexes, the line of lock futures that wait for one, and the future that holds one while its
 * child works.
 *
 * The line is a gate (gate.h) with one permit: an unlock hands the mutex over to the first future
 * in the line.  The pthread lock inside is held for a few instructions.
 */

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/integrate/hooks.h>
#include <tdt/rt/sync.h>
#include <tdt/trace.h>

#include "base/hold.h"
#include "base/result.h"
#include "runtime/gate.h"
#include "runtime/name.h"

struct tdt_mutex {
	/* It is written under `lock`; waiting tasks and dumps read it at any time. */
	struct tdt_lock head;
	pthread_mutex_t lock;  /* protects the owner, and what follows */
	struct tdt__gate gate; /* with a permit while the mutex is free */
	char *name;	       /* set before a task waits for the mutex; NULL: none */
};

/* The state of a lock future. */
struct locking {
	struct tdt__gate_leaf leaf;
	struct tdt_mutex *mutex; /* not used once the future has ended */
	uint64_t task; /* the id of the task that polled the future last; under the mutex's lock */
	const void *taken_at; /* the place in the user's code that made the future; constant */
};

/* The mutex is given to the first future in the line, or is free. */
static void hand_over(struct tdt__gate *gate, struct tdt__gate_place *to)
{
	struct tdt_mutex *mutex = (void *)((char *)gate - offsetof(struct tdt_mutex, gate));

	if (to == NULL)
		tdt_lock_take(&mutex->head, 0);
	else
		tdt_lock_hand(&mutex->head, ((struct locking *)to)->task);
}

struct tdt_mutex *tdt_mutex_new(void)
{
	struct tdt_mutex *mutex = calloc(1, sizeof(*mutex));

	if (mutex == NULL)
		return NULL;
	memcpy(mutex->head.magic, TDT_LOCK_MAGIC, sizeof(mutex->head.magic));
	pthread_mutex_init(&mutex->lock, NULL);
	tdt__gate_init(&mutex->gate, 1);
	mutex->gate.hand = hand_over;
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
	return tdt__name_set(mutex != NULL ? &mutex->name : NULL, name);
}

/* Under the lock. */
static void note_taken(struct tdt_mutex *mutex, uint64_t task, const void *taken_at)
{
	__atomic_store_n(&mutex->head.taken_at, (uintptr_t)taken_at, __ATOMIC_RELAXED);
	tdt_lock_take(&mutex->head, task);
}

bool tdt_mutex_try_lock(struct tdt_mutex *mutex)
{
	uint64_t task = tdt_current_task_id();

	if (mutex == NULL) {
		errno = EINVAL;
		return false;
	}
	TDT__HOLD(&mutex->lock);
	if (mutex->gate.permits == 0)
		return false;
	mutex->gate.permits = 0;
	note_taken(mutex, task, __builtin_return_address(0));
	return true;
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
		waker = tdt__gate_admit(&mutex->gate);
	pthread_mutex_unlock(&mutex->lock);
	tdt_waker_wake(waker);
	return held ? 0 : tdt__result(-EPERM);
}

/* --- The future that waits ------------------------------------------------------- */

static bool pass_mutex(void *state)
{
	struct locking *locking = state;
	struct tdt_mutex *mutex = locking->mutex;
	uint64_t task = tdt_current_task_id();

	TDT__HOLD(&mutex->lock);
	locking->task = task;
	if (!tdt__gate_pass(&mutex->gate, &locking->leaf.place))
		return false;
	note_taken(mutex, task, locking->taken_at);
	return true;
}

static void report_mutex(void *state)
{
	const struct tdt_mutex *mutex = ((struct locking *)state)->mutex;

	tdt_leaf_waits_on_lock(&mutex->head, mutex->name);
}

TDT__LEAF(tdt_mutex_lock, tdt__gate_leaf_poll, pass_mutex, report_mutex)

static void drop_lock(void *state)
{
	struct locking *locking = state;

	tdt__gate_leave(&locking->leaf, &locking->mutex->gate, &locking->mutex->lock);
	free(locking);
}

/* `taken_at`: the return address of the user's call. */
static struct tdt_future lock_from(struct tdt_mutex *mutex, const void *taken_at)
{
	const struct locking locking = { .mutex = mutex, .taken_at = taken_at };

	if (mutex == NULL)
		return tdt__no_future(-EINVAL);
	return tdt__future_new(&locking, sizeof locking, tdt_mutex_lock_poll, drop_lock);
}

struct tdt_future tdt_mutex_lock(struct tdt_mutex *mutex)
{
	return lock_from(mutex, __builtin_return_address(0));
}

/* --- The guard ------------------------------------------------------------------- */

struct guard {
	struct tdt_future lock, child; /* both TDT_FUTURE_NONE once the guard has ended */
	struct tdt_mutex *mutex;
	bool holds;
};

/* The child is dropped before the mutex is unlocked, and errno is left to the child's poll. */
static tdt_poll_t end_guard(struct guard *guard, tdt_poll_t result)
{
	int saved = errno;

	tdt_future_drop(&guard->lock);
	tdt_future_drop(&guard->child);
	if (guard->holds)
		tdt_mutex_unlock(guard->mutex);
	guard->holds = false;
	errno = saved;
	return result == TDT_READY ? TDT_READY : TDT_PANICKED;
}

TDT__LEAF_POLL(tdt_mutex_guard);

tdt_poll_t tdt_mutex_guard_poll(void *state, struct tdt_context *cx)
{
	struct guard *guard = state;
	tdt_poll_t result;

	if (!guard->holds) {
		result = tdt_future_poll(&guard->lock, cx);
		if (result != TDT_READY)
			return result == TDT_PENDING ? TDT_PENDING : end_guard(guard, result);
		guard->holds = true;
		tdt_future_drop(&guard->lock);
	}
	result = tdt_future_poll(&guard->child, cx);
	return result == TDT_PENDING ? TDT_PENDING : end_guard(guard, result);
}

static void drop_guard(void *state)
{
	end_guard(state, TDT_READY);
	free(state);
}

struct tdt_future tdt_mutex_guard(struct tdt_mutex *mutex, struct tdt_future child)
{
	struct guard guard = { .child = child, .mutex = mutex };
	struct tdt_future future;

	if (child.poll == NULL || child.drop == NULL)
		return tdt__no_future(-EINVAL);
	guard.lock = lock_from(mutex, __builtin_return_address(0));
	if (tdt_future_is_none(&guard.lock))
		return TDT_FUTURE_NONE;
	future = tdt__future_new(&guard, sizeof guard, tdt_mutex_guard_poll, drop_guard);
	if (tdt_future_is_none(&future))
		tdt_future_drop(&guard.lock);
	return future;
}
