/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BENCH_POOL_H
#define BENCH_POOL_H

/*
 * What a runtime is compared with: threads with one queue of calls, a mutex and a condition
 * variable.
 */

void pool_start(unsigned threads);

/* Have one of the threads make the call. */
void pool_submit(void (*call)(void *data), void *data);

/* Once all calls have been made. */
void pool_stop(void);

#endif
