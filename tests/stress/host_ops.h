/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_HOST_OPS_H
#define TDT_TESTS_HOST_OPS_H

/* What each thread is doing, for a watchdog: an operation that takes far too long hangs. */

#include <stdbool.h>
#include <stdint.h>

/* CLOCK_MONOTONIC */
uint64_t ops_now(void);

/* This thread begins `what`, which outlives it; and it has done so. */
void ops_begin(const char *what);
void ops_end(void);

/*
 * Look at all threads.  If an operation has gone on for more than `limit_s` seconds: print which,
 * and what the others are doing, and abort.
 */
void ops_look(unsigned limit_s);

/* The longest that an operation took so far, in nanoseconds; `*what` says which. */
uint64_t ops_longest(const char **what);

/* A thread is about to end, and does no more. */
void ops_leave(void);

#endif
