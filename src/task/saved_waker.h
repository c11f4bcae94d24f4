/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_SAVED_WAKER_H
#define TDT_SRC_TASK_SAVED_WAKER_H

/*
 * Whether a waker is the saved waker of a task, so that it need not be cloned again.
 *
 * A later poll can see that it was given the saved waker only if the runtime's clones are the
 * wakers themselves: we hold that waker, so no other can have its address.  Elsewhere equal
 * pointers mean nothing (a waker on the runtime's stack has the same address for every task, and
 * for every runtime that polls it from there).
 *
 * This function is in a header of its own, with a guard, so that a test can build the wrapper with
 * a naive answer in its place, and see it fail.
 */

#include "registry/handle.h"

static inline bool tdt__is_saved(const struct tdt_handle *task, const struct tdt_waker *waker)
{
	/*
	 * Relaxed: the pointer is only compared.  If a requester takes the saved waker meanwhile,
	 * it also wakes it, and the poll that follows saves another.
	 */
	/* Both hints are needed: without them the compiler places the common path out of line. */
	return __builtin_expect((uintptr_t)waker == TDT__PEEK(task->record.waker), 1) &&
	       __builtin_expect((task->record.own_bits & TDT__OWN_CLONE) != 0, 1);
}

#endif
