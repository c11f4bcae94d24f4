/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TASK_SAVED_WAKER_H
#define TDT_SRC_TASK_SAVED_WAKER_H

/*
 * Whether a waker is the one that a task has kept, so that it need not be cloned again.
 *
 * Only for a runtime whose clones are the wakers themselves can a later poll see that it has been given what is kept
 * already: we hold that one, so no other can have its address.  Elsewhere equal pointers mean nothing (a waker on the
 * runtime's stack has the same address for every task, and for every runtime that polls it from there).
 *
 * In a header of its own, so that a test can build the wrapper with a naive answer, and see it fail.
 */

#include "registry/handle.h"

static inline bool tdt__is_kept(const struct tdt_handle *task, const struct tdt_waker *waker)
{
	/* Relaxed: it is only compared.  What an asker takes meanwhile it wakes, and that poll keeps another. */
	/* Expected, each: else the compiler has the usual way jump to and fro. */
	return __builtin_expect(waker == atomic_load_explicit(&task->kept, memory_order_relaxed), 1) &&
	       __builtin_expect((task->record.own_bits & TDT__OWN_CLONE) != 0, 1);
}

#endif
