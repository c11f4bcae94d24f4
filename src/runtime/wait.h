/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Sleeping on a semaphore, uninterrupted by signals. */

#include <errno.h>
#include <semaphore.h>
#include <stdbool.h>
#include <time.h>

static inline void tdt__wait(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0 && errno == EINTR)
		;
}

/* Wait for at most `ms` milliseconds; `ms` is less than 1000.  False: the time is up. */
static inline bool tdt__wait_ms(sem_t *semaphore, long ms)
{
	struct timespec until;
	int error;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += ms * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	do
		error = sem_clockwait(semaphore, CLOCK_MONOTONIC, &until);
	while (error != 0 && errno == EINTR);
	return error == 0;
}
