/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <tdt/integrate/stack.h>

#include "host/thread.h"

/*
 * Find out where this thread's own stack lies.  The first poll on the thread makes this call, which
 * takes some microseconds.  If the stack can't be found, both ends become 1.  Not
 * async-signal-safe, except on the main thread while that is on its own stack.
 */
void tdt__stack_find(void);

/* Whether all of [low, high) is on this thread's own stack, which has been found. */
static inline bool tdt__stack_is_own(uintptr_t low, uintptr_t high)
{
	return low >= tdt__thread.stack_low && low < high && high <= tdt__thread.stack_high;
}

/* The end of a stack that its owner has reported.  NULL (no stack was entered) gives 0. */
static inline uintptr_t tdt__stack_end(const struct tdt_stack *stack)
{
	return stack != NULL ? (uintptr_t)stack->low + stack->size : 0;
}

/* Whether all of [low, high) is on a stack that its owner has reported; false for a NULL stack. */
static inline bool tdt__stack_holds(const struct tdt_stack *stack, uintptr_t low, uintptr_t high)
{
	return stack != NULL && low >= (uintptr_t)stack->low && low < high &&
	       high <= tdt__stack_end(stack);
}

/*
 * Whether all of [low, high) is one piece of stack that can be read.  This costs nothing if the
 * piece lies on this thread's own stack, which is found once for each thread.  For other stacks (a
 * host's coroutines, a signal stack), of which the library knows nothing, it costs one system call
 * for each 64 pages.  May set errno.
 */
bool tdt__stack_readable(uintptr_t low, uintptr_t high);
