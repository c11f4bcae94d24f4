/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_PROC_THREAD_H
#define TDT_SRC_HOST_PROC_THREAD_H

/*
 * What /proc tells of another thread of this process, without disturbing it.  Nothing here allocates; a descriptor is
 * open for the time of a call.
 *
 * Errors are negative errnos: -ESRCH there is no such thread (any more), else what open(2) gave (-ENOENT: no /proc;
 * -EMFILE...).
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt__blocked {
	bool runs;    /* it is on a processor, or could be: nothing else is known */
	int32_t call; /* the number of the system call it is blocked in; -1: blocked without one (a page fault) */
	uintptr_t sp;
	uintptr_t pc; /* behind the system call, or where it was interrupted */
	char text[256]; /* all that was told, ends with NUL: the same text, the same call */
};

int tdt__proc_blocked(uint32_t thread, struct tdt__blocked *blocked);

/* The signals it has blocked: bit n - 1 is for signal n. */
int tdt__proc_signals_blocked(uint32_t thread, uint64_t *mask);

#endif
