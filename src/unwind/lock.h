/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The lock of what is known of the code that is loaded (cfi.c). */

#include <pthread.h>

/*
 * Protects the newest tables of modules and rules, and the cache of pages.h.  Polling threads take
 * this lock too, to learn a new PC: that takes some 7 us, and more for the first PC in a module.
 */
extern pthread_mutex_t tdt__unwind_lock;
