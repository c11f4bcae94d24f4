/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The two sides of a Dekker handshake: each side stores its own variable, then loads that of the
 * other side.  The light side runs billions of times and is a compiler barrier; the heavy side runs
 * rarely.  The heavy side makes the kernel run a full fence on every thread of the process that is
 * on a CPU (membarrier; the other threads passed a fence when they were switched out).
 *
 * If one side does its store, light(), its load, and the other side does its store, heavy(), its
 * load, then at least one of the two loads sees the store of the other side.
 */

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Whether the light side must fence too, because the kernel refuses membarrier.  The kernel may
 * begin to refuse later (a seccomp filter).  Relaxed: a poller that has not seen the change is no
 * worse off than before.  Hidden visibility lets the code read it without the global offset table.
 */
extern atomic_bool tdt__barrier_fences __attribute__((visibility("hidden")));

/* Find out what the kernel offers.  A child of fork() calls it again. */
void tdt__barrier_init(void);

/* The requester's side. */
void tdt__barrier_heavy(void);

/*
 * The poller's side where it must fence.  It is out of line, so that a poll contains no fence
 * (tests/outside/fences.sh).
 */
void tdt__barrier_fence(void) __attribute__((cold));

/*
 * For a reader that has copied, through the kernel, memory that other threads may change.  A thread
 * announces the change by a store, passes copying(), and changes the memory.  If the copy has any
 * of the change, the reader's loads behind this call see the announcement.  On x86-64 stores become
 * visible in their order, and nothing has to be done but to keep the order of the loads.
 */
#if defined(__x86_64__)
#define tdt__barrier_copied() atomic_thread_fence(memory_order_acquire)
#else
#define tdt__barrier_copied() tdt__barrier_heavy()
#endif

/* Whether light() fences; otherwise it only has the compiler keep the order. */
static inline bool tdt__barrier_is_heavy(void)
{
	return __builtin_expect(
		atomic_load_explicit(&tdt__barrier_fences, memory_order_relaxed), 0);
}

/* The poller's side. */
static inline void tdt__barrier_light(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (tdt__barrier_is_heavy())
		tdt__barrier_fence();
}

/* The side of the thread that changes what may be copied: before the change. */
static inline void tdt__barrier_copying(void)
{
#if defined(__x86_64__)
	atomic_signal_fence(memory_order_seq_cst);
#else
	tdt__barrier_light();
#endif
}
