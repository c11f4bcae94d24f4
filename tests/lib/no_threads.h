/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_NO_THREADS_H
#define TESTS_NO_THREADS_H

/* There may be no more threads: for a suite that is linked with -Wl,--wrap=pthread_create. */

#include "lib/test.h"

static int threads_left = -1; /* that can be started; -1: any number */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	if (threads_left == 0)
		return EAGAIN;
	if (threads_left > 0)
		threads_left--;
	return __real_pthread_create(thread, attr, run, arg);
}

#endif
