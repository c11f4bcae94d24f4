/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Letting a running thread copy the stack of its poll, by a signal.
 *
 * The signal is the highest real-time signal that has the default disposition when it is first
 * needed; a handler of the host's is never replaced.  If the host takes the signal for itself
 * later, another signal is chosen at the next request.  Our handler stays installed, because it is
 * not known when the last signal will have been delivered, and a signal without a handler would end
 * the process.  The handler does nothing unless a request waits for the poll of its own thread.
 *
 * The kernel ends a process whose stack has no room for a signal.  Nobody but a thread knows how
 * much of its stack it uses, so a process that has reported a small stack is sent none.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/coroutine.h>

struct tdt_handle;
struct tdt__pieces;

/*
 * Copy the stack of poll number `polls` of `task`, which is in progress on `thread`.  Waits for the
 * copy until `deadline` (CLOCK_MONOTONIC, in nanoseconds).  Fills in all of `copy`; the caller then
 * owns its bytes.  Any thread except `thread`.
 *
 * Returns 0 or a negative errno:
 *
 *	-EAGAIN     the poll is over
 *	-ESRCH      the thread has ended
 *	-EPERM      the thread blocks the signal, or it is not known whether it does, or the process
 *	            has small stacks; nothing was sent
 *	-EBUSY      every signal is taken
 *	-ETIMEDOUT  the thread did not get to the handler
 *	-ENOMEM
 *	-EFAULT     the stack cannot be read
 *	-ENOTSUP    the thread is not on the poll's stack
 */
int tdt__interrupt(const struct tdt_handle *task, uint64_t polls, uint32_t thread,
		   uint64_t deadline, struct tdt__pieces *copy);

/* Whether a small stack was reported.  Relaxed: its owner has reported it before it is used. */
extern atomic_bool tdt__has_small_stacks;

/* A stack of so many bytes is reported; 0: of an unknown number. */
static inline void tdt__interrupt_heed(size_t size)
{
	if (__builtin_expect(size != 0 && size < TDT_COROUTINE_MIN_STACK, 0))
		atomic_store_explicit(&tdt__has_small_stacks, true, memory_order_relaxed);
}

/* Protects the choice of the signal.  Held for two system calls, and across fork() (fork.c). */
extern pthread_mutex_t tdt__interrupt_lock;

/* In a child of fork(): the threads that waited do not exist there. */
void tdt__interrupt_forked(void);
