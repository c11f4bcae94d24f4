/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CAPTURE_RUNNING_H
#define TDT_SRC_CAPTURE_RUNNING_H

/*
 * The stack of a poll that is going on, read from outside while it goes on.
 *
 * A thread that is blocked in a system call is not disturbed: the kernel tells its sp and pc, and its stack is copied.
 * A thread that runs is sent a signal, whose handler copies (interrupt.h).  The copy is then walked here.
 */

#include <stdint.h>

struct tdt_handle;
struct tdt__capture;

/* The number of the poll of `task` that is going on; 0: none is. */
uint64_t tdt__running_poll(const struct tdt_handle *task);

/*
 * A capture of poll number `polls` of `task`, if it is the one that is going on all the while: TDT_TASK_RUNNING, with
 * one leaf, the stack.  NULL and `*error` (a negative errno):
 *
 *	-EAGAIN     that poll is over, or goes in and out of system calls so often that it was not caught
 *	-EDEADLK    this thread is in the middle of it
 *	-ESRCH      its thread is gone (after a fork(): it is only in the parent)
 *	-EPERM      its thread runs, and can't be sent the signal: it is blocked, or that can't be told
 *	-EBUSY      its thread runs, and every signal is taken
 *	-ETIMEDOUT  its thread runs, and did not get to answer until `deadline` (CLOCK_MONOTONIC, in nanoseconds)
 *	-ENOTSUP    its thread is not on the poll's stack, nor on one that was entered from there
 *	            (tdt/coroutine.h): it is in a signal handler with a stack of its own, or on a
 *	            coroutine that nobody tells of, or the poll has been switched away from.  Or nobody
 *	            tells of the poll's stack, and the walk has not shown that the thread is on it
 *	-EFAULT     its stack can't be read
 *	-ENOMEM
 *
 * The caller holds a reference to `task`.  Any thread, any number of them at once.  Some 50 microseconds, unless a
 * thread has to be waited for or PCs are new.  Not async-signal-safe.
 */
struct tdt__capture *tdt__running(struct tdt_handle *task, uint64_t polls, uint32_t max_frames, uint64_t deadline,
				  int *error);

#endif
