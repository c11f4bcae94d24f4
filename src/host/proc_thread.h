/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What /proc reports about another thread of this process; reading it does not disturb that thread.
 * Nothing here allocates.  A file descriptor is open during each call.
 *
 * Errors are negative errnos: -ESRCH if there is no such thread (any more), -EIO if the file has
 * not the expected form; otherwise the error of open(2) (-ENOENT: no /proc; -EMFILE...) or of
 * read(2).
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt__blocked {
	bool runs;    /* the thread is on a processor, or ready to be: nothing else is known */
	int32_t call; /* the number of the system call that the thread is blocked in; -1: it is
			 blocked without a call (a page fault) */
	uintptr_t sp;
	uintptr_t pc; /* the instruction after the system call, or the interrupted one */
	char text[256]; /* all that /proc reported, with a NUL at the end: if the text is the same
			   later, so is the call */
};

int tdt__proc_blocked(uint32_t thread, struct tdt__blocked *blocked);

/* The signals that the thread has blocked: bit n - 1 is for signal n. */
int tdt__proc_signals_blocked(uint32_t thread, uint64_t *mask);
