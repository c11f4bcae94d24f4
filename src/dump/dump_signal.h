/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <pthread.h>

/*
 * Protects the choice of the signal that dumps, and the state of the thread that takes the dump.
 * It is held for a few system calls, and across fork() (fork.c).
 */
extern pthread_mutex_t tdt__signal_lock;

/*
 * Start the thread that takes the dumps, if TDT_DUMP chose a signal.  tdt__start() calls this, in
 * each process once.  If no thread can be started, the signal does nothing.
 */
void tdt__dump_begin(void);
