// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A future that lets other tasks go first.  It is pending once, and wakes the task at once, so
 * that the runtime puts the task at the end of a queue.  It waits for nothing, so it does not call
 * tdt_leaf_waits_on().
 */

#include <stdlib.h>

#include <tdt/rt/runtime.h>

#include "base/leaf_poll.h"

enum stage { NEW, YIELDED, ENDED };

TDT__LEAF_POLL(tdt_yield_now);

tdt_poll_t tdt_yield_now_poll(void *state, struct tdt_context *cx)
{
	enum stage *stage = state;

	switch (*stage) {
	case NEW:
		*stage = YIELDED;
		tdt_waker_wake_by_ref(cx->waker);
		return TDT_PENDING;
	case YIELDED:
		*stage = ENDED;
		return TDT_READY;
	case ENDED:
		break;
	}
	return TDT_PANICKED;
}

struct tdt_future tdt_yield_now(void)
{
	return tdt__future_new(&(enum stage){ NEW }, sizeof(enum stage), tdt_yield_now_poll, free);
}
