// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A plugin with a leaf that keeps its waker until the plugin is unloaded. */

#include <tdt/future.h>

static const struct tdt_waker *kept;

tdt_poll_t plugin_poll(void *state, struct tdt_context *cx);

__attribute__((visibility("default"))) tdt_poll_t plugin_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	tdt_waker_drop(kept);
	kept = tdt_waker_clone(cx->waker);
	return TDT_PENDING;
}

static __attribute__((destructor)) void unloaded(void)
{
	tdt_waker_drop(kept);
}
