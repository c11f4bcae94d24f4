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

/* In a child of fork(): only the slot of this thread is owned. */
void tdt__slots_forked(void);
