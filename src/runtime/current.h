/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What a thread knows of its runtime: a worker, a thread in tdt_rt_block_on(), a blocking thread
 * (`rt` alone), or a watchdog (`deals` alone).  On other threads all members are NULL.
 */

struct tdt_rt;
struct tdt__driver;
struct tdt__worker;

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
