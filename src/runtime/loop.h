/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The driver's struct, which driver.c, timer.c and socket.c share. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "runtime/driver.h"

struct tdt__timer;

TAILQ_HEAD(tdt__sockets, tdt__socket);

enum tdt__held { TDT__NOBODY, TDT__WORKER, TDT__WATCHDOG };

struct tdt__driver {
	atomic_uint refs;

	/* Constant from the start, until the driver is stopped. */
	pthread_t thread; /* the watchdog */
	struct tdt_rt *rt;
	uint32_t forks; /* as in struct tdt_rt */
	int epoll;
	int alarm; /* an eventfd in `epoll`, which is never read: each write is an event */
	int clock; /* a timerfd on which the watchdog sleeps between two looks */

	/* Protects the members from here to `stopped`.  No foreign code (a waker) runs under it. */
	pthread_mutex_t lock;
	struct tdt__timer *timers; /* the running timers: a heap (timer.c) */
	uint64_t timers_started;
	struct tdt__sockets sockets; /* the sockets that `epoll` knows */
	struct tdt__sockets freed;   /* those of which the present turn may have an event */
	unsigned n_freed;
	/*
	 * The thread in the role may sleep until this time, in ms of CLOCK_MONOTONIC; UINT64_MAX:
	 * for ever.  0: it will look at the members above before it sleeps.  This thread sets it
	 * to 0 without the lock.
	 */
	_Atomic uint64_t sleeps_until;
	atomic_bool stopped; /* tdt__driver_stop() has begun.  Read without the lock too */

	char apart[64];

	/* The role: driver.h.  Sequentially consistent where nothing else is said. */
	atomic_uint held;     /* enum tdt__held */
	atomic_bool watching; /* the watchdog is in the role, or will look */
	atomic_bool wanted;   /* a worker would like to have the role from the watchdog */
	_Atomic uint64_t turns; /* how many there were; written in the role.  Relaxed */
};

static inline bool tdt__driver_stopped(struct tdt__driver *driver)
{
	/* Sequentially consistent: tdt__socket_wait() says why. */
	return atomic_load(&driver->stopped);
}

/* False in a child of fork(), in which the lock may be held, and `epoll` is the parent's. */
bool tdt__driver_is_here(const struct tdt__driver *driver);

/*
 * Have the thread in the role look at its timers at `due_ms` at the latest; 0 means at once.  The
 * driver is locked, and not stopped.
 */
void tdt__driver_wake(struct tdt__driver *driver, uint64_t due_ms);
