/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

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
