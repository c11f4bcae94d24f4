// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A future, or the end of its time. */

#include <config.h>

#include "timeout.h"

#include <errno.h>
#include <stdlib.h>

#include "sleep.h"

struct timeout {
	struct tdt_future future; /* both none when it has ended */
	struct tdt_future sleep;
	bool *elapsed; /* may be NULL */
};

/* Drops leave errno as it is: a poll that panics may say why. */
static tdt_poll_t end(struct timeout *timeout, tdt_poll_t result)
{
	int saved = errno;

	tdt_future_drop(&timeout->future);
	tdt_future_drop(&timeout->sleep);
	errno = saved;
	return result == TDT_READY ? TDT_READY : TDT_PANICKED;
}

static tdt_poll_t tdt_timeout(void *state, struct tdt_context *cx)
{
	struct timeout *timeout = state;
	bool elapsed = false;
	tdt_poll_t result;

	result = tdt_future_poll(&timeout->future, cx);
	if (result == TDT_PENDING) {
		result = tdt_future_poll(&timeout->sleep, cx);
		if (result == TDT_PENDING)
			return TDT_PENDING;
		elapsed = true;
	}
	if (result == TDT_READY && timeout->elapsed != NULL)
		*timeout->elapsed = elapsed;
	return end(timeout, result);
}

static void drop(void *state)
{
	struct timeout *timeout = state;

	end(timeout, TDT_READY);
	free(timeout);
}

struct tdt_future tdt__timeout_new(struct tdt_future future, uint64_t ms, bool *elapsed)
{
	struct timeout *timeout;

	if (future.poll == NULL || future.drop == NULL) {
		errno = EINVAL;
		return TDT_FUTURE_NONE;
	}
	timeout = malloc(sizeof(*timeout));
	if (timeout == NULL)
		return TDT_FUTURE_NONE;
	*timeout = (struct timeout){ future, tdt__sleep_ms_new(ms), elapsed };
	if (tdt_future_is_none(&timeout->sleep)) {
		free(timeout);
		return TDT_FUTURE_NONE;
	}
	return (struct tdt_future){ timeout, tdt_timeout, drop };
}
