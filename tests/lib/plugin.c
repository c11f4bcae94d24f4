// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A plugin whose future waits.  Built twice, as PLUGIN_NAME a and b: with the same code but for the
 * names and the size of a frame, so that where b lies at a's address, calls have the same return
 * addresses but other ways to their callers.
 */

#include <tdt/future.h>

#define PASTE(a, b, c) a##b##c
#define NAME(prefix, plugin, name) PASTE(prefix, plugin, name)
#define FUNCTION(name) NAME(plugin_, PLUGIN_NAME, name)

static __attribute__((noinline)) void FUNCTION(_leaf)(struct tdt_context *cx)
{
	char buffer[PLUGIN_FRAME];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	__asm__ volatile("" : : "r"(buffer) : "memory");
}

/* The same name in both, for dlsym(). */
tdt_poll_t plugin_poll(void *state, struct tdt_context *cx);

static __attribute__((noinline)) void FUNCTION(_middle)(struct tdt_context *cx)
{
	char buffer[2 * PLUGIN_FRAME];

	__asm__ volatile("" : : "r"(buffer) : "memory");
	FUNCTION(_leaf)(cx);
	__asm__ volatile("" : : "r"(buffer) : "memory");
}

__attribute__((visibility("default"))) tdt_poll_t plugin_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	FUNCTION(_middle)(cx);
	TDT_KEEP_FRAME();
	return TDT_PENDING;
}
