/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_SLOT_H
#define TDT_RUNTIME_SLOT_H

/*
 * Where a leaf leaves its waker for whoever makes it able to go on.  There is no lock: whoever takes the waker out of
 * the slot owns it.
 *
 * A poll registers, and looks at what it waits for after that.  Who makes it so does it before, and then wakes.  Each
 * exchange is sequentially consistent, so one of the two sees the other: a wake-up between the look and the
 * registration is not lost.
 *
 *   poll                          another thread
 *     register the waker            make it so
 *     is it so?  go on              take the waker, and wake
 *     no: pending
 *
 *   tdt__slot_register            one thread at a time: the leaf's poll
 *   tdt__slot_take, wake, clear   any thread, any time
 */

#include <stdatomic.h>

#include <tdt/future.h>

struct tdt__slot {
	const struct tdt_waker *_Atomic waker; /* owned by the slot; NULL: nobody waits */
};

/* Take out what waits, for the caller to wake or drop.  NULL: nothing does. */
static inline const struct tdt_waker *tdt__slot_take(struct tdt__slot *slot)
{
	return atomic_exchange(&slot->waker, NULL); /* pairs with the exchange in tdt__slot_register() */
}

/* Give up what waits. */
static inline void tdt__slot_clear(struct tdt__slot *slot)
{
	tdt_waker_drop(tdt__slot_take(slot));
}

/* Wake what waits, if anything does. */
static inline void tdt__slot_wake(struct tdt__slot *slot)
{
	tdt_waker_wake(tdt__slot_take(slot));
}

/*
 * Leave a clone of `waker`, unless what is there is the same waker already; which is surely so if the addresses are
 * the same, since the slot holds its clone.  A waker that can't be cloned is woken: the task then tries again.
 *
 * Always inlined, so that the leaf's own poll is what clones, on the stack too.
 */
static inline __attribute__((always_inline)) void tdt__slot_register(struct tdt__slot *slot,
								     const struct tdt_waker *waker)
{
	const struct tdt_waker *clone;

	if (tdt_waker_will_wake(atomic_load(&slot->waker), waker))
		return; /* whoever takes it meanwhile wakes this task */
	clone = tdt_waker_clone(waker);
	if (clone == NULL)
		tdt_waker_wake_by_ref(waker);
	tdt_waker_drop(atomic_exchange(&slot->waker, clone)); /* pairs with the exchange in tdt__slot_take() */
}

#endif
