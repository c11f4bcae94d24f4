// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Starting the library's own threads. */

#include "base/service.h"

#include <signal.h>

/*
 * libdw needs some hundred KiB; the host's limit may be lower, or there may be none.  A stack stays
 * mapped when its thread has ended, and a reader outside is to leave less than 2 MiB behind.
 */
#define STACK_SIZE ((size_t)3 << 19)

int tdt__service_start(void *(*run)(void *))
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int error = pthread_attr_init(&attr);

	if (error != 0)
		return -error;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	error = pthread_create(&thread, &attr, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -error;
}

int tdt__service_need(void *(*run)(void *), bool *running, pthread_mutex_t *lock)
{
	int error;

	if (*running)
		return 0;
	*running = true;
	pthread_mutex_unlock(lock);
	error = tdt__service_start(run);
	pthread_mutex_lock(lock);
	if (error != 0)
		*running = false;
	return error;
}
