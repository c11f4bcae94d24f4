// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See start.h. */

#include "host/start.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "host/barrier.h"

uint32_t tdt__forks;
_Atomic bool tdt__started;

static bool registered; /* set in a child of fork(), where these handlers have run */

/* This child of fork() has not called tdt__start() yet.  Relaxed: it orders nothing. */
static atomic_bool forked;

static void in_child(void)
{
	registered = true;
	atomic_store_explicit(&forked, true, memory_order_relaxed);
	atomic_store_explicit(&tdt__started, false, memory_order_relaxed);
	tdt__forks++;
	tdt__barrier_init();
	tdt__fork_handlers.in_child();
}

static int status;

static void start_host(void)
{
	tdt__barrier_init();
	/*
	 * If the process forks while another thread is in this function, the child runs it again.
	 * Handlers that were registered twice would take each lock twice, and wait for ever.
	 */
	if (!registered)
		status = -pthread_atfork(tdt__fork_handlers.before, tdt__fork_handlers.after,
					 in_child);
	tdt__fork_handlers.begin();
}

__attribute__((noinline, cold)) int tdt__start_first(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, start_host);
	if (atomic_load_explicit(&forked, memory_order_relaxed) &&
	    atomic_exchange_explicit(&forked, false, memory_order_relaxed))
		tdt__fork_handlers.resume();
	atomic_store_explicit(&tdt__started, status == 0, memory_order_release);
	return status;
}
