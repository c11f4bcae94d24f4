/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_CURRENT_H
#define TDT_RUNTIME_CURRENT_H

/* What a thread of a runtime knows: on a worker, and in tdt_rt_block_on(), on a driver's thread.  All NULL on others. */

struct tdt_rt;
struct tdt__driver;
struct tdt__worker;

struct tdt__current {
	struct tdt_rt *rt;
	struct tdt__driver *driver; /* where the leaves polled here register their timers and sockets */
	struct tdt__worker *worker; /* NULL in tdt_rt_block_on() */

	/* On a driver's thread: while it wakes a task, itself; and its runtime, if workers are still to hear of tasks. */
	struct tdt__driver *gathers;
	struct tdt_rt *gathered;
};

/* Only its own thread touches it. */
extern __thread __attribute__((tls_model("initial-exec"))) struct tdt__current tdt__current;

#endif
