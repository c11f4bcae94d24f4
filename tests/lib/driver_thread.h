/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_DRIVER_THREAD_H
#define TESTS_DRIVER_THREAD_H

/*
 * What the kernel says of the driver's thread, which it knows by its name.  There is one in the
 * process.
 */

#include <stddef.h>

/* How often it went to sleep. */
long driver_thread_switches(void);

/*
 * Wait until it has gone to sleep more often than `switches`, and sleeps.  Returns how often by
 * now.
 */
long driver_thread_asleep(long switches);

/* The value behind `field` ("SigBlk:") in its status, as text. */
void driver_thread_status(const char *field, char *value, size_t size);

#endif
