/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The epoch, which the ticker of watch.c advances, and the ticker's lock. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The epoch: 0, if the watch is off; otherwise a value that differs from the previous one and has
 * not been used for a long time.  Flags are added while the recorder runs, and while threads are
 * labelled (task/label.h): then no task has seen this epoch, and every poll takes a closer look.
 *
 * Relaxed: nothing depends on when a poll sees a change.  The epoch has a cache line of its own,
 * because polls read it often and it changes rarely.  It is stored under tdt__watch_lock.
 */
#define TDT__EPOCH_RECORDING 0x8000u
#define TDT__EPOCH_LABELS 0x4000u
#define TDT__EPOCH_FLAGS (TDT__EPOCH_RECORDING | TDT__EPOCH_LABELS)

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

/* The epoch, with the flags. */
static inline uint16_t tdt__epoch_word(void)
{
	return atomic_load_explicit(&tdt__epoch.now, memory_order_relaxed);
}

/* The epoch of the watch. */
static inline uint16_t tdt__epoch_now(void)
{
	return tdt__epoch_word() & (uint16_t)~TDT__EPOCH_FLAGS;
}

/*
 * Protects the state of watch.c and of the ticker, who also fills the pools of last_tree.c and
 * spare_captures.c.  Held across fork (fork.c).
 */
extern pthread_mutex_t tdt__watch_lock;

/* Store another epoch; the flags stay.  Under tdt__watch_lock. */
static inline void tdt__epoch_set(uint16_t epoch)
{
	uint16_t word = (uint16_t)(epoch | (tdt__epoch_word() & TDT__EPOCH_FLAGS));

	atomic_store_explicit(&tdt__epoch.now, word, memory_order_relaxed);
}

/* Set or clear a flag; the rest stays.  Takes tdt__watch_lock. */
void tdt__epoch_flag(uint16_t flag, bool set);

/* The same in a child of fork, where tdt__watch_lock is held. */
void tdt__epoch_forked(uint16_t flag, bool set);
