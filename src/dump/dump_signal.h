/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_DUMP_DUMP_SIGNAL_H
#define TDT_SRC_DUMP_DUMP_SIGNAL_H

#include <pthread.h>

/*
 * Protects which signal dumps, and the thread that does it.  It is held for some system calls, and across fork()
 * (fork.c).
 */
extern pthread_mutex_t tdt__signal_lock;

#endif
