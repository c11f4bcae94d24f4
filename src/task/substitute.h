/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The substitute: the waker with which a task's child is polled while a capture is made, or while a
 * tracer is attached to task-waker-clone.  Its clone records the stack, fires that probe, and
 * returns a clone of the real waker.  In polls that were made for a request, that clone may be
 * wrapped in a counted clone (counted.h).
 */

#include <tdt/future.h>

#include "capture/counted.h"
#include "registry/handle.h"

extern const struct tdt_waker_vtable tdt__substitute_vtable;

static inline void tdt__substitute_init(struct tdt__substitute *substitute)
{
	substitute->waker.vtable = &tdt__substitute_vtable;
}

/*
 * The runtime's own waker beneath `waker`, which may be the substitute of an outer traced future,
 * or a counted clone that an inner runtime passes on.  NULL: `waker` is a substitute that was kept
 * beyond its poll.
 */
static inline const struct tdt_waker *tdt__waker_beneath(const struct tdt_waker *waker)
{
	if (__builtin_expect(waker->vtable == &tdt__substitute_vtable, 0))
		waker = atomic_load_explicit(
		    &((const struct tdt__substitute *)(const void *)waker)->real,
		    memory_order_relaxed);
	else if (__builtin_expect(waker->vtable == &tdt__counted_vtable, 0))
		waker = tdt__counted_real(waker);
	return waker;
}
