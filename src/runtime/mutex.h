/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_MUTEX_H
#define TDT_RUNTIME_MUTEX_H

/* Between the mutex (mutex.c) and the future that waits for it (mutex_lock.c). */

#include <stdbool.h>
#include <stdint.h>

#include "runtime/slot.h"

struct tdt_mutex;

/* Who wants the mutex, and is in the line or at its head.  All zero but `mutex` to begin with. */
struct tdt__place {
	struct tdt_mutex *mutex; /* NULL: the future has ended.  The future's own */
	struct tdt__slot slot;	 /* to be woken when the mutex is handed over */

	/* Under the mutex's lock. */
	struct tdt__place *previous, *next; /* while in the line */
	enum {
		TDT__OUTSIDE,
		TDT__IN_LINE,
		TDT__HOLDS /* the mutex is this one's */
	} at;
	uint64_t task; /* the id of the one it was last polled in; 0: none */
};

/*
 * Take the mutex, if it is free or was handed over.  If not, stand in the line, where the place is kept; `*holder` is
 * the id of the task that holds the mutex then, 0 if none does.
 */
bool tdt__place_take(struct tdt__place *place, uint64_t *holder);

/* Leave the line.  What was handed over is handed on. */
void tdt__place_leave(struct tdt__place *place);

struct tdt_future tdt__mutex_lock_new(struct tdt_mutex *mutex);

#endif
