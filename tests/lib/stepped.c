// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Counting steps.  The child is a copy of this process, so code is where it is here, and is read
 * here.
 */

#include <config.h>

#include "lib/stepped.h"

#include <stdio.h>

#include "lib/sanitized.h"

#if defined(__x86_64__) && !ASAN && !TSAN

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/must.h"

/* --- Functions ------------------------------------------------------------------- */

#define ENTRY(name) (uintptr_t)name

/*
 * Where the functions begin that are counted, as this process calls them (and for strings, as
 * libraries do).
 */
static bool is_one_of(const uintptr_t *entry, size_t n, uintptr_t pc)
{
	for (size_t i = 0; i < n; i++)
		if (entry[i] == pc)
			return true;
	return false;
}

#define IS_ONE_OF(entries, pc) is_one_of(entries, sizeof(entries) / sizeof((entries)[0]), pc)

static void count_function(struct steps *steps, uintptr_t pc)
{
	static const uintptr_t allocations[] = { ENTRY(malloc),	      ENTRY(calloc), ENTRY(realloc),
						 ENTRY(free),	      ENTRY(mmap),   ENTRY(munmap),
						 ENTRY(posix_memalign), ENTRY(aligned_alloc) };
	static const uintptr_t locks[] = { ENTRY(pthread_mutex_lock),
					   ENTRY(pthread_mutex_trylock),
					   ENTRY(pthread_mutex_unlock),
					   ENTRY(pthread_rwlock_rdlock),
					   ENTRY(pthread_rwlock_wrlock),
					   ENTRY(pthread_rwlock_unlock),
					   ENTRY(pthread_spin_lock),
					   ENTRY(pthread_spin_unlock),
					   ENTRY(pthread_cond_wait),
					   ENTRY(pthread_cond_timedwait),
					   ENTRY(pthread_cond_signal),
					   ENTRY(pthread_cond_broadcast),
					   ENTRY(sem_wait),
					   ENTRY(sem_post),
					   ENTRY(pthread_once) };
	static const uintptr_t look_ups[] = {
		ENTRY(dl_iterate_phdr), ENTRY(dladdr), ENTRY(dladdr1),
		ENTRY(dlsym),           ENTRY(dlvsym), ENTRY(dlopen)
	};
	static const uintptr_t searches[] = { ENTRY(strlen),  ENTRY(strnlen), ENTRY(strcmp),
					      ENTRY(strncmp), ENTRY(strchr),  ENTRY(strrchr),
					      ENTRY(memchr),  ENTRY(strstr),  ENTRY(memcmp) };

	steps->allocations += IS_ONE_OF(allocations, pc);
	steps->locks += IS_ONE_OF(locks, pc);
	steps->look_ups += IS_ONE_OF(look_ups, pc);
	steps->searches += IS_ONE_OF(searches, pc);
}

/* The kernel's page of code. */
static bool in_vdso(uintptr_t pc)
{
	static uintptr_t low, high;

	if (low == 0) {
		const ElfW(Ehdr) *header = (const void *)getauxval(AT_SYSINFO_EHDR);
		const ElfW(Phdr) *part;

		low = high = (uintptr_t)header;
		if (header == NULL)
			return false;
		part = (const void *)((const char *)header + header->e_phoff);
		for (int i = 0; i < header->e_phnum; i++)
			if (part[i].p_type == PT_LOAD)
				high = low + part[i].p_memsz;
	}
	return pc >= low && pc < high;
}

/* --- Instructions ------------------------------------------------------------------ */

/* Only as far as is needed to tell those that are counted from all others. */
static void count_instruction(struct steps *steps, const uint8_t *code)
{
	bool locked = false, repeated = false, wide = false;
	uint8_t group, way;

	for (;; code++) {
		if (*code == 0xf0)
			locked = true;
		else if (*code == 0xf2 || *code == 0xf3)
			repeated = true;
		else if (*code == 0x66)
			wide = true;
		else if (*code != 0x67 && *code != 0x26 && *code != 0x2e && *code != 0x36 &&
			 *code != 0x3e && *code != 0x64 && *code != 0x65)
			break;
	}
	if (*code >= 0x40 && *code <= 0x4f)
		code++;
	steps->instructions++;
	way = code[1] >> 6; /* where there is a byte for the operands: 3 means registers alone */
	if (locked || ((*code == 0x86 || *code == 0x87) && way != 3)) {
		steps->locked++;
	} else if (*code == 0xcd && code[1] == 0x80) {
		steps->system_calls++; /* int 0x80 */
	} else if (repeated && (*code == 0xa6 || *code == 0xa7 || *code == 0xae || *code == 0xaf)) {
		steps->searches++; /* cmps, scas */
	} else if (*code == 0xcf) {
		steps->fences++; /* iret */
	} else if (*code == 0x0f) {
		code++;
		way = code[1] >> 6;
		group = code[1] >> 3 & 7;
		if (*code == 0x05 || *code == 0x34)
			steps->system_calls++; /* syscall, sysenter */
		else if (*code == 0x31 || (*code == 0x01 && code[1] == 0xf9))
			steps->clocks++; /* rdtsc, rdtscp */
		else if (*code == 0xa2 || (*code == 0x01 && code[1] == 0xe8))
			steps->fences++; /* cpuid, serialize */
		else if (*code == 0xae && way == 3 && group >= 5 && !repeated && !wide)
			steps->fences++; /* lfence, mfence, sfence */
	}
}

/* --- The traced child ------------------------------------------------------------------ */

#define REFUSED 77

void steps_allow(void)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
		_exit(REFUSED);
}

/* The next thread of the child to stop at a trap; -1: it has ended, and `*status` is how. */
static pid_t next_trap(pid_t child, int *status)
{
	for (;;) {
		pid_t thread = waitpid(-1, status, __WALL);

		MUST(thread > 0);
		if (WIFSTOPPED(*status) && WSTOPSIG(*status) == SIGTRAP)
			return thread;
		if (WIFSTOPPED(*status))
			MUST(ptrace(PTRACE_CONT, thread, NULL,
				    (void *)(uintptr_t)WSTOPSIG(*status)) == 0);
		else if (thread == child)
			return -1;
	}
}

/* Both on one processor: a step is quicker there, as neither has to be woken on another. */
static pid_t start(void (*run)(void))
{
	cpu_set_t here;
	pid_t child;

	CPU_ZERO(&here);
	CPU_SET((size_t)sched_getcpu(), &here);
	sched_setaffinity(0, sizeof here, &here);
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		run();
		_exit(EXIT_FAILURE); /* with no mark */
	}
	return child;
}

static void stop(pid_t child)
{
	kill(child, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR) /* its stepped thread as well */
		;
}

static void no_marks(void)
{
	steps_allow();
}

const char *steps_impossible(void)
{
	int status;

	if (in_valgrind())
		return "valgrind executes other instructions";
	waitpid(start(no_marks), &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == REFUSED)
		return "ptrace is refused here";
	return NULL;
}

struct steps steps_count(void (*run)(void), void (*within)(void))
{
	struct steps steps = { 0 };
	struct user_regs_struct at;
	bool counting = within == NULL, was_in_vdso = false;
	uintptr_t end = UINTPTR_MAX;
	pid_t child = start(run), thread;
	int status;

	thread = next_trap(child, &status);
	MUST(thread > 0);
	for (;;) {
		const uint8_t *code;

		MUST(ptrace(PTRACE_GETREGS, thread, NULL, &at) == 0);
		code = (const uint8_t *)at.rip;
		if (*code == 0xcc || at.rsp > end)
			break;
		if (!counting && at.rip == (uintptr_t)within) {
			counting = true;
			end = at.rsp;
		}
		if (counting) {
			count_instruction(&steps, code);
			count_function(&steps, at.rip);
			steps.clocks += in_vdso(at.rip) && !was_in_vdso;
			was_in_vdso = in_vdso(at.rip);
		}
		MUST(ptrace(PTRACE_SINGLESTEP, thread, NULL, NULL) == 0);
		MUST(next_trap(child, &status) == thread);
	}
	MUST(counting);
	stop(child);
	return steps;
}

#else

const char *steps_impossible(void)
{
	return ASAN || TSAN ? "a sanitizer's code would be stepped, too"
			    : "only code of x86-64 is known";
}

void steps_allow(void)
{
}

struct steps steps_count(void (*run)(void), void (*within)(void))
{
	(void)run;
	(void)within;
	return (struct steps){ 0 };
}

#endif

void steps_print(const char *what, const struct steps *steps)
{
	printf("# %s: %ld instructions; %ld locked, %ld fences, %ld system calls, %ld clocks, %ld "
	       "allocations, %ld locks, "
	       "%ld look-ups, %ld searches\n",
	       what, steps->instructions, steps->locked, steps->fences, steps->system_calls,
	       steps->clocks, steps->allocations, steps->locks, steps->look_ups, steps->searches);
	fflush(stdout);
}
