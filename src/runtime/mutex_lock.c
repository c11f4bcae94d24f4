// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The future that waits for a mutex.  For backtraces its poll has the name of the public call that
 * makes it.  So that call has another name here, and <tdt/rt/sync.h>, its header, is not included.
 */

#include <config.h>

#include <errno.h>
#include <stdlib.h>

#include "base/leaf_poll.h"
#include "base/result.h"
#include "runtime/mutex.h"

TDT__LEAF_POLL(tdt_mutex_lock);

tdt_poll_t tdt_mutex_lock(void *state, struct tdt_context *cx)
{
	struct tdt__lock_place *place = state;

	if (place->mutex == NULL)
		return TDT_PANICKED;
	if (!tdt__lock_place_take(place)) {
		tdt__slot_register(&place->slot, cx->waker);
		/* The mutex may have been handed over before the waker was registered. */
		if (!tdt__lock_place_take(place)) {
			tdt__mutex_report(place->mutex);
			return TDT_PENDING;
		}
	}
	place->mutex = NULL;
	return TDT_READY;
}

static void drop_lock(void *state)
{
	struct tdt__lock_place *place = state;

	if (place->mutex != NULL)
		tdt__lock_place_leave(place);
	tdt__slot_clear(&place->slot);
	free(place);
}

struct tdt_future tdt__mutex_lock_at(struct tdt_mutex *mutex, const void *taken_at)
{
	struct tdt__lock_place *place;

	if (mutex == NULL)
		return tdt__no_future(-EINVAL);
	place = calloc(1, sizeof(*place));
	if (place == NULL)
		return TDT_FUTURE_NONE;
	place->mutex = mutex;
	place->taken_at = taken_at;
	return (struct tdt_future){ place, tdt_mutex_lock, drop_lock };
}

struct tdt_future tdt__mutex_lock_new(struct tdt_mutex *mutex) TDT__LEAF_CALL(tdt_mutex_lock);

struct tdt_future tdt__mutex_lock_new(struct tdt_mutex *mutex)
{
	return tdt__mutex_lock_at(mutex, __builtin_return_address(0));
}
