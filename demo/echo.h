/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_ECHO_H
#define DEMO_ECHO_H

/* A TCP echo service: its tasks, on a runtime of its own. */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/net.h>
#include <tdt/runtime.h>
#include <tdt/sync.h>

struct echo_options {
	const char *host;
	unsigned long port, workers, idle_ms, report_ms;
	bool wedge; /* let the handler of the third connection lock a mutex twice */
};

struct statistics {
	uint64_t connections, echoes, bytes;
};

struct service {
	const struct echo_options *options;
	struct tdt_rt *rt;
	struct tdt_tcp_listener *listener;

	struct tdt_mutex *mutex; /* awaited; of the statistics */
	struct statistics statistics;

	bool accept_failed; /* to be read after service_stop() */
};

/*
 * Start it.  It uses `options` until it is stopped.  Returns 0; or a negative errno, and what failed in `*what`.
 * service_stop() is called in any case.
 *
 * Should it fail later to accept, for want of memory, it sends its own process SIGTERM.
 */
int service_start(struct service *service, const struct echo_options *options, const char **what);

/* Drop all its tasks, and close all its connections. */
void service_stop(struct service *service);

#endif
