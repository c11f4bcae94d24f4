/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What a semaphore, a notification (semaphore.c) and their futures (gate_futures.c) share. */

#include <pthread.h>

#include "runtime/gate.h"

/* A struct tdt_notify is this, too. */
struct tdt_semaphore {
	pthread_mutex_t lock;
	struct tdt__gate gate; /* under `lock` */
	char *name;	       /* set before a task waits; NULL: none */
};
