/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What the mutex (mutex.c) and the future that waits for it (mutex_lock.c) share. */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/gate.h"

struct tdt_mutex;

/* The state of a lock future. */
struct tdt__locking {
	struct tdt__gate_leaf leaf;
	struct tdt_mutex *mutex;
	uint64_t task; /* the id of the task that polled the future last; under the mutex's lock */
	const void *taken_at; /* the place in the user's code that made the future; constant */
};

/* Take the mutex if it is free or was handed over; otherwise the future is in the line. */
bool tdt__mutex_pass(struct tdt__locking *locking);

/* Leave the line.  If the mutex was handed over to this future, hand it over to the next one. */
void tdt__mutex_leave(struct tdt__locking *locking);

/* Report, from the poll of a leaf, that it waits for the mutex. */
void tdt__mutex_report(const struct tdt_mutex *mutex);

/* `taken_at`: the return address of the user's call. */
struct tdt_future tdt__mutex_lock_at(struct tdt_mutex *mutex, const void *taken_at);
