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

static bool pass_mutex(void *state)
{
	return tdt__mutex_pass(state);
}

static void report_mutex(void *state)
{
	tdt__mutex_report(((struct tdt__locking *)state)->mutex);
}

TDT__LEAF_POLL_BY(tdt_mutex_lock, tdt__gate_leaf_poll(state, cx, pass_mutex, report_mutex))

static void drop_lock(void *state)
{
	struct tdt__locking *locking = state;

	if (!locking->leaf.ended)
		tdt__mutex_leave(locking);
	tdt__slot_clear(&locking->leaf.place.slot);
	free(locking);
}

struct tdt_future tdt__mutex_lock_at(struct tdt_mutex *mutex, const void *taken_at)
{
	struct tdt__locking *locking;

	if (mutex == NULL)
		return tdt__no_future(-EINVAL);
	locking = calloc(1, sizeof *locking);
	if (locking == NULL)
		return TDT_FUTURE_NONE;
	locking->mutex = mutex;
	locking->taken_at = taken_at;
	return (struct tdt_future){ locking, tdt_mutex_lock, drop_lock };
}

struct tdt_future tdt__mutex_lock_new(struct tdt_mutex *mutex) TDT__LEAF_CALL(tdt_mutex_lock);

struct tdt_future tdt__mutex_lock_new(struct tdt_mutex *mutex)
{
	return tdt__mutex_lock_at(mutex, __builtin_return_address(0));
}
