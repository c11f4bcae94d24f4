/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_BARRIER_H
#define TDT_SRC_HOST_BARRIER_H

/*
 * The two sides of a Dekker handshake ("I store mine, then load yours") of which one side is taken billions of times
 * and the other rarely: the light side is a compiler barrier, the heavy side makes the kernel run a full fence on every
 * thread of the process that is on a CPU (membarrier; the others passed one when they were switched out).
 *
 * With L's store, light(), L's load on one side and H's store, heavy(), H's load on the other, at least one of the two
 * loads sees the other side's store.
 */

#include <stdatomic.h>
#include <stdbool.h>

/*
 * Whether the light side must fence too: the kernel refuses membarrier, or did so later (a seccomp filter).  Relaxed: a
 * poller that has not seen it change is no worse off than before.
 */
extern atomic_bool tdt__barrier_fences __attribute__((visibility("hidden"))); /* reached without a detour */

/* Find out what the kernel offers; again after fork, in the child. */
void tdt__barrier_init(void);

/* The asker's side. */
void tdt__barrier_heavy(void);

/* The poller's side where it must fence: out of line, so that a poll has no fence in it (tests/fences.sh). */
void tdt__barrier_fence(void) __attribute__((cold));

/* The poller's side. */
static inline void tdt__barrier_light(void)
{
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&tdt__barrier_fences, memory_order_relaxed), 0))
		tdt__barrier_fence();
}

#endif
