/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_WAIT_H
#define TDT_RUNTIME_WAIT_H

/* Sleeping on a semaphore whatever signals come. */

#include <errno.h>
#include <semaphore.h>

static inline void tdt__wait(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0 && errno == EINTR)
		;
}

#endif
