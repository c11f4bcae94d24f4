/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_RT_H
#define TDT_RUNTIME_RT_H

/*
 * A runtime: what its workers share.  It stays after tdt_rt_free() as long as there is a waker of one of its tasks.
 *
 * Locks, each of which is taken with none of the others held: those of the lists of live tasks, those of the shared
 * queue (inject.h), that of the parked workers.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/runtime.h>

#include "runtime/idle.h"
#include "runtime/inject.h"
#include "runtime/live.h"
#include "runtime/worker.h"

struct tdt_rt {
	/* Written by every spawn; what follows is read by every poll, and so is kept apart. */
	atomic_uint refs;	  /* of its maker, and of each task that wakers have outlived */
	_Atomic uint64_t spawned; /* tasks; relaxed */
	char apart[64];

	atomic_bool closing;  /* tdt_rt_free() has begun */
	atomic_bool stopping; /* workers poll nothing more */
	uint32_t forks;       /* tdt__rt_forks when it was made: in a child it is another.  Constant */
	struct tdt__driver *driver;
	struct tdt__inject inject;
	struct tdt__idle idle;
	unsigned n_workers;
	struct tdt__worker workers[];
};

/*
 * How many forks lie between this process and the one that first made a runtime.  Of a runtime that was made before the
 * last of them there is no thread here, and its locks may be held for ever.
 */
extern uint32_t tdt__rt_forks;

static inline bool tdt__rt_is_here(const struct tdt_rt *rt)
{
	return rt->forks == tdt__rt_forks;
}

void tdt__rt_ref(struct tdt_rt *rt);
void tdt__rt_unref(struct tdt_rt *rt);

#endif
