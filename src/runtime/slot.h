/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A slot holds the waker of a leaf for the thread that will complete the leaf.  There is no lock:
 * the thread that takes the waker out of the slot owns it.
 *
 * A poll first registers its waker, and then checks the condition for which it waits.  The
 * completing thread first makes the condition true, and then takes the waker.  Both exchanges are
 * sequentially consistent, so one of the two threads sees what the other did, and no wake-up is
 * lost.
 *
 *   poll                          another thread
 *     register the waker            make the condition true
 *     if it is true, go on          take the waker, and wake it
 *     if not, return pending
 *
 *   tdt__slot_register            one thread at a time: the leaf's poll
 *   tdt__slot_take, clear         any thread, any time
 */

#include <stdatomic.h>

#include <tdt/future.h>

struct tdt__slot {
	const struct tdt_waker *_Atomic waker; /* owned by the slot; NULL: no leaf waits */
};

/* Take the waker out.  The caller wakes or drops it.  NULL: there is none. */
static inline const struct tdt_waker *tdt__slot_take(struct tdt__slot *slot)
{
	/* Pairs with the exchange in tdt__slot_register(). */
	return atomic_exchange(&slot->waker, NULL);
}

/* Drop the waker, if there is one. */
static inline void tdt__slot_clear(struct tdt__slot *slot)
{
	tdt_waker_drop(tdt__slot_take(slot));
}

/*
 * Put a clone of `waker` into the slot, unless the slot holds a clone of the same waker already.
 * (An equal address proves that it does: the clone in the slot keeps this address in use.)  If the
 * clone fails, the waker is woken, so that the task tries again.
 *
 * This is always inlined, so that on the stack, too, the leaf's own poll clones the waker.
 */
static inline __attribute__((always_inline)) void tdt__slot_register(struct tdt__slot *slot,
								     const struct tdt_waker *waker)
{
	const struct tdt_waker *clone;

	if (tdt_waker_will_wake(atomic_load(&slot->waker), waker))
		return; /* a thread that takes it meanwhile wakes this task */
	clone = tdt_waker_clone(waker);
	if (clone == NULL)
		tdt_waker_wake_by_ref(waker);
	/* Pairs with the exchange in tdt__slot_take(). */
	tdt_waker_drop(atomic_exchange(&slot->waker, clone));
}
