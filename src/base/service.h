/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/*
 * The library's own threads, which work for the host's threads.  They block all signals, so that
 * none of the host's handlers runs on them.  They are detached, because they may be stuck in the
 * loader or in a file system, and nothing waits for their end.  A child of fork() has none of them.
 */

/*
 * Start a thread that runs `run(NULL)`; `run` names the thread itself.  Returns 0 or a negative
 * errno.  The call mostly takes some tens of microseconds.  But pthread_create() waits for a lock
 * that dlopen() holds while it maps a file and while it waits for the loader's list.  So the caller
 * must not hold a lock that fork() waits for, and a caller with a deadline needs a thread that was
 * started earlier.
 */
int tdt__service_start(void *(*run)(void *));

/*
 * Start the thread unless `*running` says that there is one, or that it is being started.  The
 * caller holds `lock`, which protects `*running` and is given up meanwhile.  Returns as
 * tdt__service_start(); on failure `*running` is false.
 */
int tdt__service_need(void *(*run)(void *), bool *running, pthread_mutex_t *lock);
