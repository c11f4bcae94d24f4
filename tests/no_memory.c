// SPDX-License-Identifier: Apache-2.0 OR MIT
/* malloc, calloc and realloc that fail when told to.  Only the thread that asked for it is touched. */

#include <config.h>

#include "no_memory.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sanitized.h"

/* Volatile, because a compiler knows that malloc reads no variable of the program's. */
static __thread volatile int armed;
static __thread volatile int countdown; /* to the allocation that fails */
static __thread volatile int failed;
static __thread volatile int asked;     /* for memory, while armed */
static __thread volatile int from = -1; /* the allocation from which on all fail; -1: one does, by countdown */
static __thread volatile long balance;  /* allocated and not freed while armed */

#if !ASAN && !TSAN
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static int fails(void)
{
	if (!armed)
		return 0;
	asked++;
	if (from < 0 ? countdown-- != 0 : asked <= from)
		return 0;
	failed++;
	errno = ENOMEM;
	return 1;
}

static void *count(void *memory)
{
	if (armed && memory != NULL)
		balance++;
	return memory;
}

void *malloc(size_t size)
{
	return fails() ? NULL : count(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : count(__libc_calloc(n, size));
}

void *realloc(void *old, size_t size)
{
	void *memory;

	if (fails())
		return NULL;
	memory = __libc_realloc(old, size);
	return old == NULL ? count(memory) : memory;
}

/* What the registry keeps for good: it may fail, but is no leak. */
void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __libc_memalign(alignment, size);
}

void free(void *memory)
{
	if (armed && memory != NULL)
		balance--;
	__libc_free(memory);
}
#endif

/* A sanitizer has malloc of its own, and so has valgrind, though only for the libraries. */
int no_memory_possible(void)
{
	void *volatile memory;

	armed = 1;
	countdown = 0;
	memory = malloc(1);
	armed = 0;
	if (memory == NULL && !in_valgrind())
		return 1;
	free(memory);
	printf("# allocations can't be made to fail here: not tried\n");
	return 0;
}

void no_memory_begin(int first)
{
	from = first < 0 ? INT_MAX : first;
	asked = 0;
	balance = 0;
	armed = 1;
}

int no_memory_end(void)
{
	armed = 0;
	from = -1;
	return asked;
}

long no_memory_kept(void)
{
	return balance;
}

void no_memory_each(int (*call)(void *argument), void *argument, int least)
{
	int result;

	if (!no_memory_possible())
		return;
	ck_assert_int_eq(call(argument), 0); /* what is allocated once a process is, now */
	for (int i = 0;; i++) {
		countdown = i;
		failed = 0;
		balance = 0;
		armed = 1;
		result = call(argument);
		armed = 0;
		ck_assert_msg(balance == 0, "%ld not freed when allocation %d fails", balance, i);
		if (!failed) {
			ck_assert_int_eq(result, 0);
			ck_assert_int_ge(i, least);
			return;
		}
		ck_assert_msg(result == -ENOMEM, "%d instead of -ENOMEM when allocation %d fails", result, i);
	}
}
