/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_NO_MEMORY_H
#define TDT_TESTS_NO_MEMORY_H

/*
 * Let each allocation of a call fail in turn.  malloc and its kin are replaced in the whole test
 * program (glibc lets a program do that, and so do the sanitizers); valgrind does so itself, so
 * there it is only said that nothing was tried.
 */

/* Whether allocations can be made to fail here. */
int no_memory_possible(void);

/* The rest of the test needs that. */
#define NEEDS_FAILING_MEMORY()                                                                     \
	do {                                                                                       \
		if (!no_memory_possible())                                                         \
			return;                                                                    \
	} while (0)

/*
 * Call `call` with the first allocation failing, then with the second, and so on until it returns 0
 * untouched.  Each time before it must return -ENOMEM and have freed what it allocated.  At least
 * `least` allocations must have failed.
 */
void no_memory_each(int (*call)(void *argument), void *argument, int least);

/*
 * From now on every allocation of this thread from the `first` on fails (from 0; -1: none does),
 * until no_memory_end(), which returns how many there were.
 */
void no_memory_begin(int first);
int no_memory_end(void);

/* How many allocations between the last two of these calls were not freed there. */
long no_memory_kept(void);

#endif
