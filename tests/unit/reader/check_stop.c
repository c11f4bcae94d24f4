// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers reader/stop.  A child that runs is stopped, and goes on. */

#include <sys/ptrace.h>

#include "lib/refused.h"
#include "lib/test.h"
#include "reader/stop.h"

/* However long the child stands still: the reader itself would give it up after a second. */
pid_t waitpid(pid_t pid, int *status, int options)
{
	return wait4(pid, status, options & ~WNOHANG, NULL);
}

static volatile unsigned long *turns; /* of the child */
static pid_t child;

static _Noreturn __attribute__((noinline)) void spin(void)
{
	for (;;)
		++*turns;
}

static void start_child(void)
{
	turns = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(turns != MAP_FAILED);
	child = fork();
	if (child == 0)
		spin();
	while (*turns == 0)
		usleep(1000);
}

static void expect_turns(void)
{
	unsigned long before = *turns;

	while (*turns == before)
		usleep(1000);
}

static void end_child(void)
{
	kill(child, SIGKILL);
	ck_assert_int_eq(waitpid(child, NULL, 0), child);
}

CASE(stops)

TEST(a_thread_is_stopped_where_it_runs_and_goes_on)
{
	struct tdt__stopped stopped;
	struct tdt__cpu cpu = { 0 };
	unsigned long before;
	uintptr_t pc;

	start_child();
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(tdt__thread_stop(&stopped, (uint32_t)child, &cpu), 0);
		before = *turns;
		usleep(20000);
		ck_assert_uint_eq(*turns, before);
		tdt__thread_resume(&stopped);
		expect_turns();
	}
	pc = (uintptr_t)cpu.value[TDT__DWARF_PC];
	if (ASAN || TSAN || in_valgrind())
		puts("# not tried: the registers may be those of a sanitizer, or of valgrind");
	else
		ck_assert(pc >= (uintptr_t)spin && pc < (uintptr_t)spin + 256);
	end_child();
}

TEST(a_signal_that_comes_meanwhile_is_delivered)
{
	struct tdt__stopped stopped;
	struct tdt__cpu cpu;
	int status;

	start_child();
	ck_assert_int_eq(tdt__thread_stop(&stopped, (uint32_t)child, &cpu), 0);
	kill(child, SIGUSR1);
	tdt__thread_resume(&stopped);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
}

/*
 * The signal may end the thread before it is seized, or later.  (That a signal stops the thread
 * first, as ptrace(2) allows, takes a signal within the microsecond before PTRACE_INTERRUPT; 500
 * attempts did not bring it about.)
 */
TEST(a_signal_that_comes_before_is_delivered)
{
	for (int i = 0; i < 50; i++) {
		struct tdt__stopped stopped;
		struct tdt__cpu cpu;
		int status, error;

		start_child();
		kill(child, SIGUSR1);
		error = tdt__thread_stop(&stopped, (uint32_t)child, &cpu);
		if (error == 0)
			tdt__thread_resume(&stopped);
		else /* it has ended, or is about to end */
			ck_assert(error == -ESRCH || error == -EPERM);
		if (waitpid(child, &status, 0) == child)
			ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
		munmap((void *)(uintptr_t)turns, 4096);
	}
}

TEST(a_thread_that_cannot_be_stopped_goes_on)
{
	struct tdt__stopped stopped;
	struct tdt__cpu cpu;

	start_child();
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, child, NULL, NULL), 0);
	ck_assert_int_eq(tdt__thread_stop(&stopped, (uint32_t)child, &cpu), -EPERM);
	expect_turns();
	end_child();
	ck_assert_int_eq(tdt__thread_stop(&stopped, (uint32_t)child, &cpu), -ESRCH);
}

SUITE_SKIP(tracing_refused())
