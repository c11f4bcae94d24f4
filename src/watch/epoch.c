// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The epoch: see epoch.h. */

#include "watch/epoch.h"

struct tdt__epoch tdt__epoch;

pthread_mutex_t tdt__watch_lock = PTHREAD_MUTEX_INITIALIZER;

void tdt__epoch_forked(uint16_t flag, bool set)
{
	uint16_t rest = (uint16_t)(tdt__epoch_word() & ~flag);

	atomic_store_explicit(&tdt__epoch.now, (uint16_t)(rest | (set ? flag : 0)),
			      memory_order_relaxed);
}

void tdt__epoch_flag(uint16_t flag, bool set)
{
	pthread_mutex_lock(&tdt__watch_lock);
	tdt__epoch_forked(flag, set);
	pthread_mutex_unlock(&tdt__watch_lock);
}
