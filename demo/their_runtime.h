/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_THEIR_RUNTIME_H
#define DEMO_THEIR_RUNTIME_H

/*
 * A small runtime, as another project might have written it: threads, a queue of tasks, wakers.  It
 * shares only the ABI of futures with tdt.  A real program has a runtime of its own here.
 */

#include <tdt/future.h>

struct their_runtime;

/* Start a runtime with `threads` threads.  NULL and errno if there is no memory, or no thread. */
struct their_runtime *their_runtime_new(unsigned threads);

/*
 * Have `future` polled until it has ended, and then dropped.  Returns 0, and takes over the
 * future; or -1 and errno if there is no memory, and the future stays the caller's.
 */
int their_runtime_spawn(struct their_runtime *runtime, struct tdt_future future);

/* Wait for the polls in progress, and drop all futures that have not ended.  NULL does nothing. */
void their_runtime_free(struct their_runtime *runtime);

#endif
