/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_BASE_SERVICE_H
#define TDT_SRC_BASE_SERVICE_H

/*
 * Threads of the library's own, which serve the host's.  They have all signals blocked, so that none of the host's
 * handlers runs on them, and are detached: they may be stuck in the loader or in a file system, and nobody waits for
 * their end.  A child of fork() has none of them.
 */

/*
 * Start a thread that runs `run(NULL)`, which gives itself a name.  Returns 0 or a negative errno.  It mostly takes some
 * tens of microseconds; but pthread_create() waits for a lock that dlopen() holds while it maps a file, and while it waits
 * for the loader's list.  So no lock that fork() waits for may be held by the caller, and whoever has a deadline needs a
 * thread that was started before.
 */
int tdt__service_start(void *(*run)(void *));

#endif
