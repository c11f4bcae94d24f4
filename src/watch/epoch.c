// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The epoch: see epoch.h. */

#include "watch/epoch.h"

struct tdt__epoch tdt__epoch;

pthread_mutex_t tdt__watch_lock = PTHREAD_MUTEX_INITIALIZER;

void tdt__epoch_forked(bool records)
{
	atomic_store_explicit(&tdt__epoch.now,
			      (uint16_t)(tdt__epoch_now() | (records ? TDT__EPOCH_RECORDING : 0)),
			      memory_order_relaxed);
}

void tdt__epoch_record(bool records)
{
	pthread_mutex_lock(&tdt__watch_lock);
	tdt__epoch_forked(records);
	pthread_mutex_unlock(&tdt__watch_lock);
}
