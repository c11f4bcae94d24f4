/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_DRIVEN_H
#define TESTS_DRIVEN_H

/*
 * The least of a runtime for tests of timers and sockets: a driver, and tasks that are polled by
 * the thread of the test, when it says so.
 */

#include <stdint.h>

#include <tdt/future.h>

#include "lib/scoped.h"

/* Start a driver for this thread, or stop it: fixtures. */
void driven_setup(void);
void driven_teardown(void);

/* Only stop it: what is registered lives on, and polls on this thread still find the driver. */
void driven_stop(void);

/* Let this thread use the driver that another one started, or none (NULL). */
struct tdt__driver *driven_driver(void);
void driven_use(struct tdt__driver *driver);

struct driven; /* a task */

/* A task for `future`, which must not be none. */
struct driven *driven_new(struct tdt_future future);

/* Poll once. */
tdt_poll_t driven_poll(struct driven *task);

/* Wait until it has been woken, once more since the last call. */
void driven_wait(struct driven *task);

/* How often it was woken; and how many of its wakers are alive. */
int driven_wakes(struct driven *task);
int driven_wakers(struct driven *task);

/* Drop the future.  Wakers may live on. */
void driven_end(struct driven *task);

static inline void scoped_driven_end(struct driven **task)
{
	driven_end(*task);
}

/* Declare a task that ends with the block. */
#define DRIVEN(name, ...) SCOPED_POINTER(struct driven *, scoped_driven_end, name, __VA_ARGS__)

/*
 * Poll until it has ended, sleeping until it is woken, and drop it.  Returns what the last poll
 * returned.
 */
tdt_poll_t drive(struct tdt_future future);

/* CLOCK_MONOTONIC */
uint64_t driven_now_ns(void);

#endif
