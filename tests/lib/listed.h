/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_LISTED_H
#define TESTS_LISTED_H

#include <pthread.h>

#include "registry/handle.h"
#include "task/request.h"

/* How many requests wait for a poll to take them. */
static inline int listed(struct tdt_handle *handle)
{
	pthread_mutex_t *lock = tdt__request_lock(handle);
	int n = 0;

	pthread_mutex_lock(lock);
	for (struct tdt__request *request = handle->requests; request != NULL;
	     request = request->next)
		n++;
	pthread_mutex_unlock(lock);
	return n;
}

#endif
