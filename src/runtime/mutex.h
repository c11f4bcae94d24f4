/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_MUTEX_H
#define TDT_RUNTIME_MUTEX_H

/* What the mutex (mutex.c) and the future that waits for it (mutex_lock.c) share. */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/slot.h"

struct tdt_mutex;

/* The state of a lock future.  At the beginning all members but `mutex` are zero. */
struct tdt__lock_place {
	struct tdt_mutex *mutex; /* NULL: the future has ended.  Only the future uses it */
	struct tdt__slot slot;	 /* woken when the mutex is handed over */

	/* Under the mutex's lock. */
	struct tdt__lock_place *previous, *next; /* while in the line */
	enum {
		TDT__OUTSIDE,
		TDT__IN_LINE,
		TDT__HOLDS /* this future holds the mutex */
	} at;
	uint64_t task; /* the id of the task that polled the future last; 0: none */

	const void *taken_at; /* the place in the user's code that made the future; constant */
};

/*
 * Take the mutex if it is free or was handed over to `place`, and return true.  Otherwise put
 * `place` at the end of the line, or leave it where it is in the line.
 */
bool tdt__lock_place_take(struct tdt__lock_place *place);

/* Leave the line.  If the mutex was handed over to `place`, hand it over to the next place. */
void tdt__lock_place_leave(struct tdt__lock_place *place);

/* Report, from the poll of a leaf, that it waits for the mutex. */
void tdt__mutex_report(const struct tdt_mutex *mutex);

/* `taken_at`: the return address of the user's call. */
struct tdt_future tdt__mutex_lock_at(struct tdt_mutex *mutex, const void *taken_at);

#endif
