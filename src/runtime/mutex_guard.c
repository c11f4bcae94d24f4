// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The future that holds a mutex while its child works: mutex_lock.c says why it has that name. */

#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "base/leaf_poll.h"
#include "runtime/mutex.h"

/* Declared here: <tdt/rt/sync.h> has a call of the same name as the poll below. */
int tdt_mutex_unlock(struct tdt_mutex *mutex);

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

tdt_poll_t tdt_mutex_guard(void *state, struct tdt_context *cx)
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

struct tdt_future tdt__mutex_guard_new(struct tdt_mutex *mutex, struct tdt_future child)
    TDT__LEAF_CALL(tdt_mutex_guard);

struct tdt_future tdt__mutex_guard_new(struct tdt_mutex *mutex, struct tdt_future child)
{
	struct guard *guard;

	if (child.poll == NULL || child.drop == NULL) {
		errno = EINVAL;
		return TDT_FUTURE_NONE;
	}
	guard = calloc(1, sizeof *guard);
	if (guard == NULL)
		return TDT_FUTURE_NONE;
	guard->lock = tdt__mutex_lock_at(mutex, __builtin_return_address(0));
	if (tdt_future_is_none(&guard->lock)) {
		free(guard);
		return TDT_FUTURE_NONE;
	}
	guard->child = child;
	guard->mutex = mutex;
	return (struct tdt_future){ guard, tdt_mutex_guard, drop_guard };
}
