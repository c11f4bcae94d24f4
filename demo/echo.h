/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_ECHO_H
#define DEMO_ECHO_H

/* A TCP echo service: its tasks, on a runtime of its own. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <tdt/rt/net.h>
#include <tdt/rt/runtime.h>
#include <tdt/rt/sync.h>

struct echo_options {
	const char *host;
	unsigned long port, workers, idle_ms, report_ms;
	unsigned long metrics_port; /* 0: no metrics */
	unsigned long drain_ms;	    /* how long connections may go on when the service ends */
	bool wedge; /* let the handler of the third connection lock a mutex twice */
};

struct statistics {
	uint64_t connections, echoes, bytes;
};

struct service {
	const struct echo_options *options;
	struct tdt_rt *rt;
	struct tdt_tcp_listener *listener;

	struct tdt_mutex *mutex; /* protects `statistics`; tasks await it */
	struct statistics statistics;

	struct tdt_handle *acceptor;
	atomic_uint open;	  /* connections */
	struct tdt_notify *ended; /* notified when one ends */
	bool accept_failed;	  /* read it after service_stop() */
};

/*
 * Start the service.  It uses `options` until it is stopped.  Returns 0; or a negative errno, with
 * a word for what failed in `*what`.  The caller calls service_stop() in either case.
 *
 * If the service later cannot accept connections for lack of memory, it sends its own process
 * SIGTERM.
 */
int service_start(struct service *service, const struct echo_options *options, const char **what);

/* Accept no more connections, and wait until all have ended, but not longer than `drain_ms`. */
void service_drain(struct service *service);

/* Drop all tasks of the service, and close all its connections. */
void service_stop(struct service *service);

#endif
