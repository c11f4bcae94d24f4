/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_WATCH_EPOCH_H
#define TDT_SRC_WATCH_EPOCH_H

/* The epoch, which the ticker of watch.c advances, and the ticker's lock. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/*
 * 0: the watch is off.  Otherwise a value that differs from the previous one and has not been used
 * for a long time.  Relaxed: nothing depends on when a poll sees a change.  The epoch has a cache
 * line of its own, because polls read it often and it changes rarely.
 */
struct tdt__epoch {
	_Alignas(64) _Atomic uint16_t now;
	/*
	 * How long the epoch before this one lasted, in nanoseconds: so long each tree stayed the
	 * task's last one, if the task was polled often.  Relaxed, like `now`.
	 */
	_Atomic uint64_t tick;
};

/* Hidden, so that polls reach it without the global offset table. */
extern struct tdt__epoch tdt__epoch __attribute__((visibility("hidden")));

static inline uint16_t tdt__epoch_now(void)
{
	return atomic_load_explicit(&tdt__epoch.now, memory_order_relaxed);
}

/*
 * Protects the state of watch.c and of the ticker, who also fills the pools of last_tree.c and
 * spare_captures.c.  Held across fork (fork.c).
 */
extern pthread_mutex_t tdt__watch_lock;

#endif
