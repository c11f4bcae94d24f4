/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Writing without the signals that may come of it.
 *
 * A thread that makes a file larger than RLIMIT_FSIZE allows gets SIGXFSZ besides EFBIG; one that
 * writes to a pipe which nobody reads gets SIGPIPE besides EPIPE.  Either ends the process.  A
 * terminal may stop a process in the background by SIGTTOU.  Between these two calls the signals
 * are blocked in this thread, and what the kernel sent is taken back.  The host's dispositions and
 * the signals of other threads stay as they are.
 */

#include <signal.h>

struct tdt__write_signals {
	sigset_t mask; /* the thread's own */
	sigset_t ours; /* those that nobody else had sent before */
};

void tdt__write_signals_block(struct tdt__write_signals *signals);

/* Keeps errno. */
void tdt__write_signals_restore(const struct tdt__write_signals *signals);
