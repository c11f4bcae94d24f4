/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_FORK_H
#define TDT_SRC_FORK_H

/*
 * Every lock libtdt has, in one place, because fork() must find them free: a child inherits them as they are, but not
 * the threads that would release them.  They are taken before a fork and released after it on both sides.
 *
 * So fork() waits for whoever holds one, and none is held for longer than some tens of microseconds: not while names are
 * looked up, a debug file is read, or the loader is asked; and no foreign code (poll, wake, clone, drop) is called with
 * any of them held.
 *
 * Order: tdt__signal_lock, tdt__watch_lock (watch.h), tdt__counted_lock (counted.h), tdt__symbol_lock, tdt__unwind_lock,
 * tdt__interrupt_lock, that of unloads.h, then one of the request locks, then one of the registry's (registry.c).
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Which signal dumps, and who does it (dump_signal.c).  Held for some system calls. */
extern pthread_mutex_t tdt__signal_lock;

/* The cache of symbols, and the namer's queue (namer.h).  Never taken on a polling thread. */
extern pthread_mutex_t tdt__symbol_lock;

/*
 * libunwind, and the modules and rules that are known.  Taken by polling threads, too, for what is new: some 7 us for a
 * PC, and some more for the first in its module.
 */
extern pthread_mutex_t tdt__unwind_lock;

/* Which signal running threads are asked by: see interrupt.c.  Held for two system calls. */
extern pthread_mutex_t tdt__interrupt_lock;

/* The lists of requests and of joiners of a task, chosen by the task's address.  Held for some instructions. */
pthread_mutex_t *tdt__request_lock(const void *task);

/* Take and release each of them once: who has held one has done what he did under it. */
void tdt__request_locks_pass(void);

/*
 * How many forks lie between this process and the one that first called tdt__fork_init(): a thread that was started
 * when it was another number is not here.  Changes in a child that nobody else runs in yet.
 */
extern uint32_t tdt__forks;

/*
 * Have the locks held across fork, make the process ready for tdt__barrier_heavy() (barrier.h), again in a child, and
 * start the library's threads.  Once a process; later calls return what the first did: 0 or a negative errno.
 */
int tdt__fork_init(void);

/*
 * Whether the thread that a record names is one of this process; in a child of fork(), most are not.  (0, nobody yet, counts
 * as one.)  A task that was last polled by one that is gone must not be woken: its runtime has no thread that would poll
 * it, and may have been in the middle of anything, with its locks held for ever.  May set errno.
 */
bool tdt__thread_is_here(uint32_t id);

#endif
