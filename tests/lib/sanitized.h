/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_SANITIZED_H
#define TESTS_SANITIZED_H

/*
 * Whether the test is built with AddressSanitizer, or with ThreadSanitizer: each 0 or 1.  And
 * whether it runs under valgrind.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__)
#define ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN 1
#elif __has_feature(thread_sanitizer)
#define TSAN 1
#endif
#endif

#ifndef ASAN
#define ASAN 0
#endif
#ifndef TSAN
#define TSAN 0
#endif

/*
 * With a sanitizer calls of libc's functions go through its own, which are compiled in ways that
 * tell little.
 */
#define SANITIZED (ASAN || TSAN)

/*
 * Whether a child of fork() that is to be ended by an alarm was, with ThreadSanitizer, whose
 * allocator may be locked in the child by a thread that it does not have: then it waits for ever.
 */
static inline bool tsan_hung(int status)
{
	return TSAN && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
}

static inline bool has_preloaded(const char *part)
{
	const char *preloaded = getenv("LD_PRELOAD");

	return preloaded != NULL && strstr(preloaded, part) != NULL;
}

static inline bool in_valgrind(void)
{
	return has_preloaded("vgpreload");
}

/* Under qemu-user: see check-emulated in tests/sanitizers.mk. */
static inline bool is_emulated(void)
{
	return getenv("TDT_TEST_EMULATED") != NULL;
}

static inline const char *no_threads_in_children(void)
{
	return is_emulated() ? "emulated: a child can make no threads" : NULL;
}

/* With the random delays of make check-delays. */
static inline bool is_delayed(void)
{
	return has_preloaded("delays.so");
}

/* How often a test is to do what it does `n` times: valgrind and random delays make it slow. */
static inline unsigned times_here(unsigned n)
{
	return in_valgrind() || is_delayed() ? n / 50 + 1 : n;
}

#endif
