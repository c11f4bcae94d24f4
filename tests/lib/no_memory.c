// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * malloc, strdup, calloc, realloc and reallocarray that fail when told to.  Only the calling thread
 * is concerned.
 */

#include <config.h>

#include "lib/no_memory.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/sanitized.h"

/* Volatile, because a compiler knows that malloc reads no variable of the program's. */
static __thread volatile int armed;
static __thread volatile int countdown; /* to the allocation that fails */
static __thread volatile int failed;
static __thread volatile int asked;     /* for memory, while armed */
static __thread volatile int from =
    -1; /* the allocation from which on all fail; -1: one does, by countdown */
static __thread volatile long balance;  /* allocated and not freed while armed */

/*
 * The allocator below these here: of the C library, or of a sanitizer.  The latter is needed before
 * the sanitizer itself is ready, so that the functions here must not be instrumented.
 */
#if ASAN || TSAN
#define BELOW(name) __interceptor_##name
#else
#define BELOW(name) __libc_##name
#endif
#define UNINSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined")))

void *BELOW(malloc)(size_t size);
void *BELOW(calloc)(size_t n, size_t size);
void *BELOW(realloc)(void *old, size_t size);
void *BELOW(memalign)(size_t alignment, size_t size);
void BELOW(free)(void *memory);

static UNINSTRUMENTED int fails(void)
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

static UNINSTRUMENTED void *count(void *memory)
{
	if (armed && memory != NULL)
		balance++;
	return memory;
}

UNINSTRUMENTED void *malloc(size_t size)
{
	return fails() ? NULL : count(BELOW(malloc)(size));
}

/* A sanitizer's would not call this malloc(). */
UNINSTRUMENTED char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	if (copy != NULL)
		memcpy(copy, text, size);
	return copy;
}

UNINSTRUMENTED void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : count(BELOW(calloc)(n, size));
}

UNINSTRUMENTED void *realloc(void *old, size_t size)
{
	void *memory;

	if (fails())
		return NULL;
	memory = BELOW(realloc)(old, size);
	return old == NULL ? count(memory) : memory;
}

/* The C library's calls realloc(), a sanitizer's does not. */
UNINSTRUMENTED void *reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;

	if (!__builtin_mul_overflow(n, size, &bytes))
		return realloc(old, bytes);
	errno = ENOMEM;
	return NULL;
}

/* What the registry keeps for good: it may fail, but is no leak. */
UNINSTRUMENTED void *aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : BELOW(memalign)(alignment, size);
}

UNINSTRUMENTED void free(void *memory)
{
	if (armed && memory != NULL)
		balance--;
	BELOW(free)(memory);
}

#if ASAN
/*
 * It takes no notice of what the dynamic loader keeps, but for that has to be called by the loader.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:ld-linux\n";
}
#endif

/* Valgrind has malloc of its own, though only for the libraries. */
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
	printf("# not tried: allocations can't be made to fail here\n");
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

/*
 * A sanitizer's strdup() and the like take memory that free() is then called for: there leaks are
 * for it to find.
 */
long no_memory_kept(void)
{
	return ASAN || TSAN ? 0 : balance;
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
		ck_assert_msg(no_memory_kept() == 0, "%ld not freed when allocation %d fails",
			      balance, i);
		if (!failed) {
			ck_assert_int_eq(result, 0);
			ck_assert_int_ge(i, least);
			return;
		}
		ck_assert_msg(result == -ENOMEM, "%d instead of -ENOMEM when allocation %d fails",
			      result, i);
	}
}
