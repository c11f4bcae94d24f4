// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The future that ends when its child ends, or when the child's time has elapsed. */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include <tdt/rt/runtime.h>

#include "base/leaf_poll.h"
#include "base/result.h"

enum { FUTURE, SLEEP, CHILDREN };

struct timeout {
	struct tdt_future children[CHILDREN]; /* all TDT_FUTURE_NONE once the timeout has ended */
	bool *elapsed;			      /* may be NULL */
};

/* The drops must not change errno: a poll that panicked may have set it to the reason. */
static tdt_poll_t end_timeout(struct timeout *timeout, tdt_poll_t result)
{
	int saved = errno;

	for (size_t i = 0; i < CHILDREN; i++)
		tdt_future_drop(&timeout->children[i]);
	errno = saved;
	return result == TDT_READY ? TDT_READY : TDT_PANICKED;
}

TDT__LEAF_POLL(tdt_timeout_ms);

/* One call polls both children, so that in a backtrace both are branches of this frame. */
tdt_poll_t tdt_timeout_ms_poll(void *state, struct tdt_context *cx)
{
	struct timeout *timeout = state;
	size_t children = CHILDREN;

	__asm__("" : "+r"(children)); /* or the compiler unrolls the loop into two calls */
	for (size_t i = 0; i < children; i++) {
		tdt_poll_t result = tdt_future_poll(&timeout->children[i], cx);

		if (result == TDT_PENDING)
			continue;
		if (result == TDT_READY && timeout->elapsed != NULL)
			*timeout->elapsed = i == SLEEP;
		return end_timeout(timeout, result);
	}
	return TDT_PENDING;
}

static void drop_timeout(void *state)
{
	struct timeout *timeout = state;

	end_timeout(timeout, TDT_READY);
	free(timeout);
}

struct tdt_future tdt_timeout_ms(struct tdt_future fut, uint64_t ms, bool *elapsed)
{
	struct timeout timeout = { { fut }, elapsed };
	struct tdt_future future;

	if (fut.poll == NULL || fut.drop == NULL)
		return tdt__no_future(-EINVAL);
	timeout.children[SLEEP] = tdt_sleep_ms(ms);
	if (tdt_future_is_none(&timeout.children[SLEEP]))
		return TDT_FUTURE_NONE;
	future = tdt__future_new(&timeout, sizeof timeout, tdt_timeout_ms_poll, drop_timeout);
	if (tdt_future_is_none(&future))
		tdt_future_drop(&timeout.children[SLEEP]);
	return future;
}
