// SPDX-License-Identifier: Apache-2.0 OR MIT
/* See stop.h. */

#include "reader/stop.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

/* A thread that waits for a device stops only when that is over. */
#define STOP_TRIES 1000

/* Wait until the thread has stopped.  Returns 0 or a negative errno. */
static int wait_for_stop(uint32_t thread, int *status)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < STOP_TRIES; i++) {
		pid_t waited = waitpid((pid_t)thread, status, __WALL | WNOHANG);

		if (waited < 0 && errno != EINTR)
			return -errno;
		if (waited > 0)
			return WIFSTOPPED(*status) ? 0 : -ESRCH;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}

static int read_registers(uint32_t thread, struct tdt__cpu *cpu)
{
	struct elf_prstatus status = { 0 };
	struct iovec registers = { &status.pr_reg, sizeof status.pr_reg };

	if (ptrace(PTRACE_GETREGSET, (pid_t)thread, NT_PRSTATUS, &registers) != 0)
		return -errno;
	if (registers.iov_len != sizeof status.pr_reg)
		return -ENODATA; /* the thread executes 32-bit code */
	tdt__cpu_of_core(cpu, &status);
	return 0;
}

int tdt__thread_stop(struct tdt__stopped *stopped, uint32_t thread, struct tdt__cpu *cpu)
{
	int status, error;

	*stopped = (struct tdt__stopped){ .thread = thread };
	if (ptrace(PTRACE_SEIZE, (pid_t)thread, NULL, NULL) != 0)
		return -errno;
	if (ptrace(PTRACE_INTERRUPT, (pid_t)thread, NULL, NULL) != 0)
		return -errno;
	error = wait_for_stop(thread, &status);
	if (error != 0)
		return error;
	if (status >> 16 == 0) /* not PTRACE_EVENT_STOP: a signal came first */
		stopped->signal = WSTOPSIG(status);
	error = read_registers(thread, cpu);
	if (error != 0)
		tdt__thread_resume(stopped);
	return error;
}

void tdt__thread_resume(const struct tdt__stopped *stopped)
{
	ptrace(PTRACE_DETACH, (pid_t)stopped->thread, NULL, (void *)(intptr_t)stopped->signal);
}
