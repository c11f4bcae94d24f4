/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What the kernel says of a thread that is blocked: the file syscall, see proc(5). */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct tdt__proc_syscall {
	int32_t call; /* -1: the thread is blocked in no system call */
	uint64_t sp, pc;
};

/*
 * Read the text: the number of the call, its arguments unless that is -1, sp and pc.  False: it has
 * other words, such as "running".
 */
static inline bool tdt__proc_syscall_parse(const char *text, struct tdt__proc_syscall *parsed)
{
	const char *pc = strrchr(text, ' '), *sp = pc;

	if (pc == NULL)
		return false;
	while (sp > text && sp[-1] != ' ')
		sp--;
	parsed->call = (int32_t)strtol(text, NULL, 10);
	parsed->sp = strtoull(sp, NULL, 16);
	parsed->pc = strtoull(pc, NULL, 16);
	return true;
}
