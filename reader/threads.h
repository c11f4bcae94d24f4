/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The registers and the stack of a thread of the target.
 *
 *   blocked    /proc/PID/task/TID/syscall has its pc and its stack pointer.  The stack is copied,
 *              and counts if that file says the same afterwards.
 *   running    perf_event_open(2) takes one sample of its registers and its stack; or, if that is
 *              asked for, ptrace(2) stops the thread while its stack is copied.
 *   core file  The notes have the registers, and the memory the stack.
 */

#include <tdt/tree.h>

#include "reader/entered.h"
#include "reader/registers.h"
#include "reader/target.h"

/* The most bytes of a stack that are copied. */
#define TDT__STACK_READ_MAX ((size_t)1 << 20)

struct tdt__stack {
	struct tdt__cpu cpu;
	uint64_t low; /* the address of the copy's first byte */
	size_t size;
	char *copy;
	/*
	 * TDT_CUT_NOT: the copy ends at the top.  TDT_CUT_LIMIT: the stack is too large.
	 * TDT_CUT_STACK: the thread is on another stack than the poll.
	 */
	enum tdt_cut cut;
	/*
	 * Where the frames end: where the task's future was polled, or at the base of `from`.  0:
	 * that is not known.
	 */
	uint64_t top;
	const struct tdt_stack *from; /* the entered stack that this is; NULL: the poll's own */
	int call; /* the system call in which the thread is blocked; -1: none */
};

/* How the stacks of running threads are read. */
struct tdt__sampling {
	bool stops;  /* stop them (reader/stop.h), and take no samples */
	int refused; /* why perf_event_open(2) or ptrace(2) failed, an errno; 0: it did not */
};

/* The id by which this process knows the thread that the target numbers `id`.  0: none. */
uint32_t tdt__thread_here(const struct tdt__target *target, uint32_t id);

/*
 * Call `each` for each thread, with its id as the target numbers it, and as this process does (0: a
 * core file).  Returns 0; or -ENOMEM; or what `each` returned if that was not 0, which ends it.
 */
typedef int tdt__thread_fn(uint32_t id, uint32_t here, void *arg);
int tdt__threads_visit(const struct tdt__target *target, tdt__thread_fn *each, void *arg);

/*
 * Copy the stack of the thread `id` (as the target numbers it) up to `top`; or, if the thread is on
 * one of the stacks that it has entered, up to the base of that stack.  Returns 0, and the caller
 * frees `copy`; or -EAGAIN if the thread has moved meanwhile, and -ENODATA if its stack cannot be
 * had; or -ENOMEM.
 */
int tdt__thread_stack(const struct tdt__target *target, uint32_t id, uint64_t top,
		      const struct tdt__entered *entered, struct tdt__stack *stack,
		      struct tdt__sampling *sampling);

/*
 * Copy the stack from which the stack `from` was entered, in the same way.  Returns 0, and the
 * caller frees `copy`; or -ENODATA or -ENOMEM.
 */
int tdt__outer_stack(const struct tdt__target *target, const struct tdt_stack *from, uint64_t top,
		     const struct tdt__entered *entered, struct tdt__stack *stack);
