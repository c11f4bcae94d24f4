/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_RT_H
#define TDT_RUNTIME_RT_H

/*
 * A runtime: what its workers share.  It stays after tdt_rt_free() as long as there is a waker of one of its tasks.
 *
 * Locks, each of which is taken with none of the others held: those of the lists of live tasks, that of the shared
 * queue, that of the parked workers.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/runtime.h>

#include "idle.h"
#include "inject.h"
#include "live.h"
#include "worker.h"

struct tdt_rt {
	atomic_uint refs;     /* of its maker, and of each task */
	atomic_bool closing;  /* tdt_rt_free() has begun.  Spawning reads it under the lock of a list of live tasks */
	atomic_bool stopping; /* workers poll nothing more */
	_Atomic uint64_t spawned; /* tasks; relaxed */
	struct tdt__driver *driver;
	struct tdt__inject inject;
	struct tdt__idle idle;
	struct tdt__live live; /* the tasks that were spawned by threads that are no worker of this runtime */
	unsigned n_workers;
	struct tdt__worker workers[];
};

void tdt__rt_ref(struct tdt_rt *rt);
void tdt__rt_unref(struct tdt_rt *rt);

#endif
