/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_STACK_H
#define TDT_SRC_STACK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Whether all of [low, high) is one piece of stack that can be read.  Free if it lies on this thread's own stack, whose
 * place is asked for once a thread; one system call for others (a host's coroutines, a signal stack), of which the
 * library knows nothing.  May set errno.
 */
bool tdt__stack_readable(uintptr_t low, uintptr_t high);

#endif
