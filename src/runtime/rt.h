/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A runtime: what its workers share.  After tdt_rt_free() its memory stays as long as there is a
 * waker of one of its tasks.
 *
 * The locks are those of the lists of live tasks (worker.h), of the shared queue (inject.h), of the
 * parked workers (idle.h), and of blocking jobs (blocking.h).  No thread takes a lock of one of
 * these four while it holds a lock of another.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/rt/runtime.h>

#include "runtime/blocking.h"
#include "runtime/idle.h"
#include "runtime/inject.h"
#include "runtime/worker.h"

struct tdt_rt {
	/* The creator's, and those of sets, jobs, threads, and tasks that a waker has outlived. */
	atomic_uint refs;
	char apart[64]; /* every poll reads what follows */

	atomic_bool closing;  /* tdt_rt_free() has begun */
	atomic_bool stopping; /* workers poll no more tasks */
	/*
	 * The watchdog asks for a turn of the driver after the present poll.  Relaxed: a worker
	 * that sees this late has its turn late.
	 */
	atomic_bool asked;
	uint32_t forks;       /* tdt__rt_forks at creation; a child has another value.  Constant */
	struct tdt__driver *driver;
	struct tdt__inject inject;
	struct tdt__idle idle;
	struct tdt__blocking blocking;
	unsigned n_workers;
	struct tdt__worker workers[];
};

/*
 * The number of forks between the process that first made a runtime and this process.  A runtime
 * that was made before the last of these forks has no threads here, and its locks may be held for
 * ever.
 */
extern uint32_t tdt__rt_forks;

static inline bool tdt__rt_is_here(const struct tdt_rt *rt)
{
	return rt->forks == tdt__rt_forks;
}

void tdt__rt_ref(struct tdt_rt *rt);
void tdt__rt_unref(struct tdt_rt *rt);

/*
 * What a thread knows of its runtime: a worker, a thread in tdt_rt_block_on(), a blocking thread
 * (`rt` alone), or a watchdog (`deals` alone).  On other threads all members are NULL.
 */
struct tdt__current {
	struct tdt_rt *rt;
	/* Where the leaves that are polled on this thread register their timers and sockets. */
	struct tdt__driver *driver;
	struct tdt__worker *worker; /* NULL where tasks are not polled in turn */

	/*
	 * The runtime whose driver wakes its tasks on this thread at present.  Other workers are
	 * notified of these tasks after the turn.
	 */
	struct tdt_rt *deals;
};

/* Each thread uses only its own. */
extern __thread __attribute__((tls_model("initial-exec"))) struct tdt__current tdt__current;

/*
 * Clear it behind foreign code (a poll).  This is never inlined: a compiler may keep the address of
 * `tdt__current`, and the foreign code may return on another thread.
 */
void tdt__current_clear(void);
