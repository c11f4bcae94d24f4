// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The leaf that waits for a timer. */

#include <config.h>

#include "runtime/sleep.h"

#include <errno.h>

#include <tdt/integrate/hooks.h>

#include "base/leaf_poll.h"
#include "runtime/current.h"
#include "runtime/timer.h"

static tdt_poll_t end_sleep(struct tdt__timer *timer, tdt_poll_t result)
{
	timer->ended = true;
	if (result != TDT_READY)
		errno = ENOTSUP;
	return result;
}

static tdt_poll_t wait(struct tdt__timer *timer)
{
	/* The next sleep may have its timer in the same place. */
	tdt_leaf_waits_on(TDT_WAIT_TIMER, (const void *)(uintptr_t)(timer->number + 1), 0);
	return TDT_PENDING;
}

TDT__LEAF_POLL(tdt_sleep_ms);

tdt_poll_t tdt_sleep_ms(void *state, struct tdt_context *cx)
{
	struct tdt__timer *timer = state;

	if (timer->ended)
		return TDT_PANICKED;
	if (timer->ms == 0 || tdt__timer_fired(timer))
		return end_sleep(timer, TDT_READY);
	tdt__slot_register(&timer->slot, cx->waker);
	if (timer->driver == NULL)
		return tdt__timer_start(timer, tdt__current.driver) == 0
			   ? wait(timer)
			   : end_sleep(timer, TDT_PANICKED);
	if (tdt__timer_fired(timer)) /* before the waker was registered */
		return end_sleep(timer, TDT_READY);
	return tdt__driver_stopped(timer->driver) ? end_sleep(timer, TDT_PANICKED) : wait(timer);
}

static void drop_sleep(void *state)
{
	tdt__timer_free(state);
}

struct tdt_future tdt__sleep_ms_new(uint64_t ms)
{
	struct tdt__timer *timer = tdt__timer_new(ms);

	if (timer == NULL)
		return TDT_FUTURE_NONE;
	return (struct tdt_future){ timer, tdt_sleep_ms, drop_sleep };
}
