/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Sleeping on a semaphore, uninterrupted by signals. */

#include <errno.h>
#include <semaphore.h>

static inline void tdt__wait(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0 && errno == EINTR)
		;
}
