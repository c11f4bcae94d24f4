/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_POLL_LOOP_H
#define DEMO_POLL_LOOP_H

/*
 * The smallest runtime there is: a thread that polls one future whenever it has been woken.  It knows nothing of
 * tracing; a real program has a runtime of its own here.
 */

#include <tdt/future.h>

struct poll_loop;

/*
 * Start a thread that polls `future` until it has ended.  Takes the future over.  NULL and errno if there is no memory
 * or no thread for it; then the future stays the caller's.
 */
struct poll_loop *poll_loop_start(struct tdt_future future);

/* Cancel the future if it has not ended, drop it, and wait for the thread to be gone.  NULL does nothing. */
void poll_loop_stop(struct poll_loop *loop);

#endif
