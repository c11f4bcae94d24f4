/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The fibers of the library's own coroutines: future/coroutine.c. */

#include <stddef.h>

#include "unwind/registers.h"

struct tdt_fiber;
struct tdt_handle;

/*
 * Make the fiber of a stack that belongs to no task yet; tdt_fiber_end() frees it.  NULL and errno
 * on failure.
 */
struct tdt_fiber *tdt__fiber_new(const void *low, size_t size);

/*
 * The fiber of a future is suspended with the registers `at`.  `pc` is a return address.  The fiber
 * belongs to a task, and was made ready by tdt__fiber_begin_write().
 */
void tdt__fiber_stands(struct tdt_fiber *fiber, struct tdt__registers at);

/*
 * From now on the stack belongs to the future of `task`, or, if that is NULL or a fiber of its own,
 * to no task.  Called by the thread that polls it, before the fiber is resumed.  NULL for the fiber
 * does nothing.
 */
void tdt__fiber_belongs(struct tdt_fiber *fiber, struct tdt_handle *task);
