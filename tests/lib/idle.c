// SPDX-License-Identifier: Apache-2.0 OR MIT
#include "lib/idle.h"

void drop_nothing(void *state)
{
	(void)state;
}

tdt_poll_t stay_pending(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PENDING;
}

const struct tdt_waker *clone_itself(const struct tdt_waker *waker)
{
	return waker;
}

void ignore_waker(const struct tdt_waker *waker)
{
	(void)waker;
}

static const struct tdt_waker_vtable idle_vtable = { clone_itself, ignore_waker, ignore_waker,
						     ignore_waker };
const struct tdt_waker idle_waker = { &idle_vtable };
