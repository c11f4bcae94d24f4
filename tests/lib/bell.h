/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_BELL_H
#define TESTS_BELL_H

/* A waker that rings for a thread: for tests that wait for a future on several threads at once. */

#include <semaphore.h>
#include <stdatomic.h>

#include <tdt/future.h>

extern atomic_long bells; /* that are not freed */

struct bell {
	struct tdt_waker waker; /* its clone is itself */
	atomic_uint refs;
	sem_t rung;
};

/* A bell, for the caller to give up with tdt_waker_drop(&bell->waker). */
struct bell *bell_new(void);

/* Wait until it rings, for 30 seconds at most: then the test ends. */
void bell_wait(struct bell *bell);

#endif
