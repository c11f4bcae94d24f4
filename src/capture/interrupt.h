/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_INTERRUPT_H
#define TDT_SRC_CAPTURE_INTERRUPT_H

/*
 * Having a thread that runs copy the stack of its poll, by a signal.
 *
 * The signal is the highest real-time one whose disposition is the default when it is first needed; a handler of the
 * host's is never replaced.  If the host takes the signal for itself, another is chosen the next time.  Our handler
 * stays: nobody can tell when the last signal was delivered, and one more without a handler would end the process.  It
 * does nothing but for a request that waits for just this thread's poll.
 */

#include <pthread.h>
#include <stdint.h>

struct tdt_handle;
struct tdt__pieces;

/*
 * Copy the stack of poll number `polls` of `task`, which `thread` is in the middle of; wait for that until `deadline`
 * (CLOCK_MONOTONIC, in nanoseconds).  Fills in all of `copy`, whose bytes are then the caller's.  Any thread but that.
 *
 * Returns 0 or a negative errno: -EAGAIN that poll is over; -ESRCH so is the thread; -EPERM it has the signal blocked,
 * or that can't be told, and nothing was sent; -EBUSY every signal is taken; -ETIMEDOUT it didn't get to the handler;
 * -ENOMEM; -EFAULT the stack can't be read; -ENOTSUP the thread is not on it.
 */
int tdt__interrupt(const struct tdt_handle *task, uint64_t polls, uint32_t thread, uint64_t deadline,
		   struct tdt__pieces *copy);

/* Protects the choice of the signal.  It is held for two system calls, and across fork() (fork.c). */
extern pthread_mutex_t tdt__interrupt_lock;

/* In a child of fork(): those who waited are gone. */
void tdt__interrupt_forked(void);

#endif
