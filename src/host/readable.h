/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_READABLE_H
#define TDT_SRC_HOST_READABLE_H

#include <stdbool.h>
#include <stdint.h>

#include <tdt/coroutine.h>

#include "host/thread.h"

/*
 * Find out where this thread's own stack lies, with its first poll: some microseconds.  If that
 * can't be told, both ends are 1.  Not async-signal-safe, but for
 * the main thread if it is on that stack.
 */
void tdt__stack_find(void);

/* Whether all of [low, high) is on this thread's own stack, which has been found. */
static inline bool tdt__stack_is_own(uintptr_t low, uintptr_t high)
{
	return low >= tdt__thread.stack_low && low < high && high <= tdt__thread.stack_high;
}

/* Where a stack ends that its owner has reported.  NULL (no stack was entered) gives 0. */
static inline uintptr_t tdt__stack_end(const struct tdt_stack *stack)
{
	return stack != NULL ? (uintptr_t)stack->low + stack->size : 0;
}

/* Whether all of [low, high) is on a stack that its owner has reported.  Nothing is on NULL. */
static inline bool tdt__stack_holds(const struct tdt_stack *stack, uintptr_t low, uintptr_t high)
{
	return stack != NULL && low >= (uintptr_t)stack->low && low < high &&
	       high <= tdt__stack_end(stack);
}

/*
 * Whether all of [low, high) is one piece of stack that can be read.  Free if it lies on this thread's own stack, whose
 * place is asked for once a thread; one system call for others (a host's coroutines, a signal stack), of which the
 * library knows nothing.  May set errno.
 */
bool tdt__stack_readable(uintptr_t low, uintptr_t high);

#endif
