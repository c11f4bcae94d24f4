/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Stopping a thread of the target by ptrace(2), for those who ask for it.  Everything else in this
 * folder leaves threads alone.  The thread is stopped as PTRACE_INTERRUPT does it, without a
 * signal; if this process dies, the kernel lets the thread go on.
 */

#include <stdint.h>

#include "reader/registers.h"

struct tdt__stopped {
	uint32_t thread; /* as this process numbers it */
	int signal;	 /* one that was just being delivered; 0: none */
};

/*
 * Stop the thread, and read its registers.  Returns 0, and the caller has to call
 * tdt__thread_resume() at once, on the same thread of this process.  Returns -ESRCH if the thread
 * has ended, -ETIMEDOUT if it does not stop within a second (the kernel lets it go on when this
 * process ends), or another negative errno of ptrace(2).
 */
int tdt__thread_stop(struct tdt__stopped *stopped, uint32_t thread, struct tdt__cpu *cpu);
void tdt__thread_resume(const struct tdt__stopped *stopped);
