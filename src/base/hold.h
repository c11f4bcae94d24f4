/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <pthread.h>

static inline pthread_mutex_t *tdt__take_lock(pthread_mutex_t *lock)
{
	pthread_mutex_lock(lock);
	return lock;
}

static inline void tdt__release_lock(pthread_mutex_t **lock)
{
	pthread_mutex_unlock(*lock);
}

/* A declaration: hold `lock` to the end of the block, behind what a `return` there computes. */
#define TDT__HOLD(lock)                                                                            \
	pthread_mutex_t *held __attribute__((cleanup(tdt__release_lock), unused)) =                \
	    tdt__take_lock(lock)
