/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The stack of a poll in progress, read from another thread.
 *
 * A thread that is blocked in a system call is not disturbed: the kernel reports its sp and pc, and
 * its stack is copied.  A thread that runs gets a signal, and the handler copies the stack
 * (interrupt.h).  The requester then walks the copy.
 */

#include <stdint.h>

struct tdt_handle;
struct tdt__capture;

/* The number of the poll of `task` that is in progress; 0: none is. */
uint64_t tdt__running_poll(const struct tdt_handle *task);

/*
 * Capture poll number `polls` of `task`, if that poll is in progress all the while.  The state is
 * TDT_TASK_RUNNING, and the stack is the only leaf.  On failure returns NULL, and `*error` is a
 * negative errno:
 *
 *	-EAGAIN     the poll is over, or was not caught, because it goes in and out of system calls
 *	            too often
 *	-EDEADLK    the poll is in progress on the calling thread
 *	-ESRCH      its thread does not exist (after a fork(): it exists only in the parent)
 *	-EPERM      its thread runs, and blocks the signal, or it is not known whether it does
 *	-EBUSY      its thread runs, and every signal is taken
 *	-ETIMEDOUT  its thread runs, and did not answer until `deadline` (CLOCK_MONOTONIC, in
 *	            nanoseconds)
 *	-ENOTSUP    its thread is not on the poll's stack, nor on one that was entered from there
 *	            (tdt/integrate/stack.h): it is in a signal handler with a stack of its own, or on a
 *	            coroutine that was not reported, or a coroutine has switched away from the poll.
 *	            Or the poll's stack was not reported, and the walk has not shown that the thread
 *	            is on it
 *	-EFAULT     its stack cannot be read
 *	-ENOMEM
 *
 * The caller holds a reference to `task`.  Any thread, and any number of threads at once.  Takes
 * some 50 microseconds, unless the thread must be waited for or PCs are new.  Not
 * async-signal-safe.
 */
struct tdt__capture *tdt__running(struct tdt_handle *task, uint64_t polls, uint32_t max_frames,
				  uint64_t deadline, int *error);
