/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_LOOP_H
#define TDT_RUNTIME_LOOP_H

/* What the driver is made of: for itself (driver.c), timers and sockets. */

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

	/* Of what follows.  Nothing foreign (a waker) is ever called while it is held. */
	pthread_mutex_t lock;
	struct tdt__timers timers; /* that run, what is due first first */
	uint64_t timers_started;
	struct tdt__sockets sockets; /* that libuv is to be told of */
	/*
	 * The thread may sleep until then, in ms of the loop's clock (CLOCK_MONOTONIC); UINT64_MAX: for ever.  0: it
	 * looks at all this before it sleeps.
	 */
	uint64_t sleeps_until;
	atomic_bool stopped; /* tdt__driver_stop() has begun.  Read also without the lock, relaxed */

	/* The driver's thread's: libuv's handles are not thread-safe, but for uv_async_send(). */
	uv_loop_t loop;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_timer_t timer; /* for the timer that is due first */
	uv_async_t alarm; /* anyone sends it, under the lock, until the driver is stopped */
	int highest_fd;	  /* that libuv has room for, or was promised some */
};

static inline bool tdt__driver_stopped(struct tdt__driver *driver)
{
	return atomic_load_explicit(&driver->stopped, memory_order_relaxed);
}

/* Locked, and not stopped: have the thread look at what is new at `due_ms` at the latest.  0: at once. */
void tdt__driver_wake(struct tdt__driver *driver, uint64_t due_ms);

/* On the driver's thread, before libuv hears of `fd`.  0, or -ENOMEM. */
int tdt__driver_make_room(struct tdt__driver *driver, int fd);

#endif
