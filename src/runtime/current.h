/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What a thread knows of its runtime: a worker, a thread in tdt_rt_block_on(), or a driver's
 * thread.  On other threads all members are NULL.
 */

struct tdt_rt;
struct tdt__driver;
struct tdt__worker;

struct tdt__current {
	struct tdt_rt *rt;
	/* Where the leaves that are polled on this thread register their timers and sockets. */
	struct tdt__driver *driver;
	struct tdt__worker *worker; /* NULL in tdt_rt_block_on() */

	/*
	 * Set on a driver's thread only.  `gathers` is the driver itself while it wakes a task.
	 * `gathered` is its runtime while the driver has woken tasks and not yet notified a worker.
	 */
	struct tdt__driver *gathers;
	struct tdt_rt *gathered;
};

/* Each thread uses only its own. */
extern __thread __attribute__((tls_model("initial-exec"))) struct tdt__current tdt__current;

/*
 * What is called behind foreign code (a poll, a waker) is never inlined: a compiler may keep the
 * address of `tdt__current`, and the foreign code may return on another thread.
 */
void tdt__current_clear(void);
void tdt__current_gather(struct tdt__driver *driver);
