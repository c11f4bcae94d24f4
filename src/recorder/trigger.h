/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Triggers: something that is recorded is worth a snapshot (tdt_recorder_on_trigger()).  The thread
 * that records it pulls the trigger, which is one store.  The recorder's thread sees that, and
 * calls a function of dump/, which takes the snapshot.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "registry/registry.h"

/* Relaxed: a thread may use old values when they change. */
struct tdt__trigger {
	uint64_t long_poll; /* in ticks; UINT64_MAX: no poll pulls the trigger */
	uint64_t long_wait; /* in nanoseconds; UINT64_MAX: no wait does */
	bool panics;
	/*
	 * When a poll began that pulled the trigger while it went on, in ticks.  It does not pull
	 * it again at its end.
	 */
	uint64_t poll;
	atomic_bool pulled;
	/* Takes the snapshot; NULL: nobody wants one.  Release: it is stored after its data. */
	void (*_Atomic run)(void);
};
extern struct tdt__trigger tdt__trigger __attribute__((visibility("hidden")));

static inline void tdt__trigger_pull(void)
{
	atomic_store_explicit(&tdt__trigger.pulled, true, memory_order_relaxed);
}

/* A remarkable poll is over, or, if `lasts`, goes on.  Its beginning and its duration, in ticks. */
void tdt__trigger_poll(uint64_t begin, uint64_t duration, bool lasts);

static inline void tdt__trigger_wait(uint64_t ns)
{
	if (ns >= TDT__PEEK(tdt__trigger.long_wait))
		tdt__trigger_pull();
}

static inline void tdt__trigger_panic(void)
{
	if (TDT__PEEK(tdt__trigger.panics))
		tdt__trigger_pull();
}

/*
 * Called by the recorder's thread in each round.  The snapshot is taken in the round after the one
 * that found the trigger pulled, so that it also has what followed.
 */
void tdt__trigger_round(void);
