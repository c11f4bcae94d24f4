// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Letting others go first: pending once, with the task woken already, so that its runtime puts it at the end of its
 * queue.  As in mutex_lock.c, the poll has the name of the call that makes the future.  It waits for nothing, and does
 * not say so.
 */

#include <config.h>

#include <stdlib.h>

#include "runtime/yield.h"

enum stage { NEW, YIELDED, ENDED };

static tdt_poll_t tdt_yield_now(void *state, struct tdt_context *cx)
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

struct tdt_future tdt__yield_now_new(void)
{
	enum stage *stage = malloc(sizeof(*stage));

	if (stage == NULL)
		return TDT_FUTURE_NONE;
	*stage = NEW;
	return (struct tdt_future){ stage, tdt_yield_now, free };
}
