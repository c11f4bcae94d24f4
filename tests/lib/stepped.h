/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_STEPPED_H
#define TESTS_STEPPED_H

/*
 * What a piece of code does, counted instruction by instruction: it runs in a child of this
 * process, which is traced, and steps (ptrace(2)) from one mark to the next.  Each instruction is
 * looked at before it is executed: its first bytes, and whether it is where a function begins that
 * takes a lock, or memory, or the like.
 *
 * The process has no other children meanwhile.  x86-64 alone.  Code of sanitizers, or under
 * valgrind, does more than what was written.
 */

#include <stdbool.h>

/* From one mark to the next. */
struct steps {
	long instructions;
	long locked;      /* with a lock prefix, or an exchange with memory, which needs none */
	long fences;      /* mfence and its like, and what serializes */
	long system_calls;
	long clocks; /* the clock read in the kernel's page (vdso), or the processor's counter */
	long allocations; /* calls of malloc() and its like, and of free() */
	long locks; /* of functions that take or give back mutexes, semaphores and their like */
	long look_ups;    /* of the dynamic linker: what module, what symbol */
	long searches;    /* through strings */
};

/* NULL: steps can be counted here; else why not. */
const char *steps_impossible(void);

/* A mark.  In a process that is not stepped it is the end. */
#if defined(__x86_64__)
#define STEPS_MARK() __asm__ volatile("int3" ::: "memory")
#else
#define STEPS_MARK() ((void)0)
#endif

/* To be called before the first mark, on the thread that makes both. */
void steps_allow(void);

/*
 * Run `run` in a child, and count from its first mark to its second, which is the end of the child.
 * If `within` is not NULL, only in the first call of that function after the first mark, from its
 * first instruction to its return.
 */
struct steps steps_count(void (*run)(void), void (*within)(void));

/* For a test's log. */
void steps_print(const char *what, const struct steps *steps);

#endif
