/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The program's hooks for panics: tdt_panic_hook_add(). */

#include <pthread.h>

struct tdt_handle;

/* For fork.c. */
extern pthread_mutex_t tdt__panic_hooks_lock;
void tdt__panic_hooks_forked(void);

/* Call the program's hooks, after the task has ended.  No lock is held. */
void tdt__panic_report(const struct tdt_handle *task);
