// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The public names of the calls that make the runtime's futures: their polls have them already (mutex_lock.c). */

#include <config.h>

#include <tdt/runtime.h>
#include <tdt/sync.h>

#include "mutex.h"
#include "oneshot.h"
#include "yield.h"

struct tdt_future tdt_mutex_lock(struct tdt_mutex *mutex)
{
	return tdt__mutex_lock_new(mutex);
}

struct tdt_future tdt_oneshot_receive(struct tdt_oneshot_receiver *receiver, void **value, int *error)
{
	return tdt__oneshot_receive_new(receiver, value, error);
}

struct tdt_future tdt_yield_now(void)
{
	return tdt__yield_now_new();
}
