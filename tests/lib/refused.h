/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_REFUSED_H
#define TDT_TESTS_REFUSED_H

/* Why a suite cannot run where packages are built: a container refuses system calls. */

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* NULL: a process may read itself, as a reader outside does. */
static inline const char *reading_refused(void)
{
	char from = 1, to = 0;
	struct iovec here = { &to, 1 }, there = { &from, 1 };

	return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1
		       ? NULL
		       : "reading a process is not permitted here";
}

/* NULL: a process may stop the threads of its child. */
static inline const char *tracing_refused(void)
{
	pid_t child = fork();
	const char *why = NULL;

	if (child == 0)
		for (;;)
			pause();
	if (child > 0) {
		if (ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0)
			why = "ptrace(2) is refused here";
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return why;
}

#endif
