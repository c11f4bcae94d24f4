/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The driver's struct, which driver.c, timer.c and socket.c share. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>
#include <uv/tree.h>

#include "runtime/driver.h"

RB_HEAD(tdt__timers, tdt__timer);
TAILQ_HEAD(tdt__sockets, tdt__socket);

struct tdt__driver {
	atomic_uint refs;
	pthread_t thread;

	/* Protects the members from here to `stopped`.  No foreign code (a waker) runs under it. */
	pthread_mutex_t lock;
	struct tdt__timers timers; /* the running timers, by the time they are due */
	uint64_t timers_started;
	struct tdt__sockets sockets; /* sockets with a change that libuv does not know yet */
	/*
	 * The thread may sleep until this time, in ms of the loop's clock (CLOCK_MONOTONIC);
	 * UINT64_MAX: for ever.  0: it looks at the members above before it sleeps.
	 */
	uint64_t sleeps_until;
	atomic_bool stopped; /* tdt__driver_stop() has begun.  Read without the lock too, relaxed */

	/*
	 * Only the driver's thread uses these: of libuv's calls only uv_async_send() is
	 * thread-safe.
	 */
	uv_loop_t loop;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_timer_t timer; /* for the timer that is due first */
	uv_async_t alarm; /* any thread sends it, under the lock, until the driver is stopped */
	int highest_fd;	  /* the highest descriptor that tdt__driver_make_room() found room for */
};

static inline bool tdt__driver_stopped(struct tdt__driver *driver)
{
	return atomic_load_explicit(&driver->stopped, memory_order_relaxed);
}

/*
 * Have the driver's thread look at its timers and sockets at `due_ms` at the latest; 0 means at
 * once.  The driver is locked, and not stopped.
 */
void tdt__driver_wake(struct tdt__driver *driver, uint64_t due_ms);

/* Call this on the driver's thread before libuv gets `fd`.  Returns 0 or -ENOMEM. */
int tdt__driver_make_room(struct tdt__driver *driver, int fd);
