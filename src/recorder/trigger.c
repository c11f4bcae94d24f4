// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Triggers: see trigger.h. */

#include "recorder/trigger.h"

#include <stddef.h>

struct tdt__trigger tdt__trigger = { .long_poll = UINT64_MAX, .long_wait = UINT64_MAX };

void tdt__trigger_poll(uint64_t begin, uint64_t duration, bool lasts)
{
	if (duration < TDT__PEEK(tdt__trigger.long_poll) || TDT__PEEK(tdt__trigger.poll) == begin)
		return;
	if (lasts)
		TDT__POKE(tdt__trigger.poll, begin);
	tdt__trigger_pull();
}

void tdt__trigger_round(void)
{
	static bool found; /* in the last round */
	/* Acquire what the function needs.  Pairs with tdt_recorder_on_trigger(). */
	void (*run)(void) = atomic_load_explicit(&tdt__trigger.run, memory_order_acquire);

	if (found && run != NULL)
		run();
	found = atomic_exchange_explicit(&tdt__trigger.pulled, false, memory_order_relaxed);
}
