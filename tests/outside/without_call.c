// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Runs a program that may not make one system call, as in a container; or, as YAMA, one that Yama
 * does not let read other processes (kernel.yama.ptrace_scope is 1).
 *
 *	without_call CALL PROGRAM [ARGUMENT]...
 *
 * Exit status: that of the program; 77 if system calls cannot be refused here.
 */

#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/refuse_call.h"

static const struct {
	const char *name;
	unsigned number;
	unsigned error;
} calls[] = {
	{ "perf_event_open", SYS_perf_event_open, EACCES },
	{ "process_vm_readv", SYS_process_vm_readv, ENOSYS },
	{ "YAMA", SYS_process_vm_readv, EPERM },
	{ "openat2", SYS_openat2, ENOSYS },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof calls / sizeof calls[0] && argc > 2; i++)
		if (strcmp(argv[1], calls[i].name) == 0) {
			if (!refuse_call(calls[i].number, calls[i].error))
				return 77;
			execv(argv[2], argv + 2);
			perror(argv[2]);
		}
	return 127;
}
