/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Slots: numbers that threads own, for what a thread keeps for itself and the next thread may go on
 * with (free memory, counters).  A thread uses what belongs to its slot without a lock and without
 * an atomic exchange.  Slot 0 is shared by the threads that came when all others were owned.
 *
 * Nothing has to be done at the end of a thread: a thread that looks for a slot takes that of one
 * that is gone.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/thread.h"

#define TDT__SLOTS 64

/* Find a slot for this thread, with some system calls.  Called once in each thread. */
uint32_t tdt__slot_find(void);

/* Not in a signal handler; never inlined where the stack may be that of a fiber (thread.h). */
static inline uint32_t tdt__own_slot(void)
{
	uint32_t slot = tdt__thread.slot;

	return __builtin_expect(slot != 0, 1) ? slot - 1 : tdt__slot_find();
}

/* What the owner of a slot keeps of something, so that it need not go where all threads do. */
struct tdt__kept {
	_Alignas(64) uint32_t n;
	void *item[15];
};

/* `kept` has one struct for each slot.  NULL: there is nothing. */
static inline void *tdt__kept_take(struct tdt__kept *kept)
{
	struct tdt__kept *own = &kept[tdt__own_slot()];

	return own->n != 0 ? own->item[--own->n] : NULL;
}

/* False: there is no more room, or the slot is shared. */
static inline bool tdt__kept_give(struct tdt__kept *kept, void *item)
{
	uint32_t slot = tdt__own_slot();
	struct tdt__kept *own = &kept[slot];

	if (slot == 0 || own->n == sizeof own->item / sizeof own->item[0])
		return false;
	own->item[own->n] = item;
	/* Release: a child of fork() finds the list as it was before this or after. */
	__atomic_store_n(&own->n, own->n + 1, __ATOMIC_RELEASE);
	return true;
}

/* In a child of fork(): only the slot of this thread is owned. */
void tdt__slots_forked(void);
