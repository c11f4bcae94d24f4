/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_REFUSE_CALL_H
#define TESTS_REFUSE_CALL_H

/*
 * A system call that is refused, as containers do it: by a filter, which stays as long as the
 * process.
 */

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/*
 * Have the system call `number` fail with `error` from now on, in this thread.  False: that is not
 * possible here.
 */
static inline bool refuse_call(unsigned number, unsigned error)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof code / sizeof code[0], code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0)
		return true;
	printf("# not tried: no filter of system calls can be set here\n");
	return false;
}

#endif
