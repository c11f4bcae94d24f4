/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

/*
 * What each suite is made of.  A test registers itself.  It belongs to the case above it, which
 * gives it a fixture and a time limit; a case may be opened again further down, by its name alone.
 *
 *	CASE(stacks, .setup = set_up, .teardown = tear_down, .timeout = 120)
 *
 *	TEST(equal_stacks_have_one_number) { ... }
 *	TEST(each_clock_can_be_converted, .to = 2) { ... _i ... }	runs with _i = 0 and 1
 *	TEST(a_double_free_is_fatal, .signal = SIGABRT) { ... }
 *	TEST(threads_are_read, .skip = no_threads_here) { ... }
 *
 * A test is a process of its own, unless CK_FORK=no.  main() is in tests/lib/main.c: it runs the
 * tests of a case in the order of their lines, or only the tests that the command line names.
 */

/* What most suites need: they include only what is missing here. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <tdt/tdt.h>

#include "lib/idle.h"
#include "lib/must.h"
#include "lib/no_memory.h"
#include "lib/rested_fork.h"
#include "lib/sanitized.h"
#include "lib/scoped.h"
#include "lib/seeded.h"

/*
 * Check has each claim that holds written to a file at once, to know where a test was that a signal
 * ends.  In loops that is most of the work, so a place is told once: what Check then names is the
 * last place that was new.
 */
static inline void test_is_at(const char *file, int line)
{
	static _Thread_local uintptr_t told[64];
	uintptr_t place = (uintptr_t)file + (uintptr_t)line;

	if (told[place % 64] != place)
		_mark_point(file, line);
	told[place % 64] = place;
}
#define _mark_point test_is_at

/*
 * A function that is handed to the library takes what the library gives, whether it wants it; and
 * one that takes the place of another has no prototype elsewhere.
 */
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

#define NOINLINE __attribute__((noinline))

/* What a compiler must take to be read, written and kept. */
#define USE(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

struct test_options {
	/* Of a test: it runs for each _i from `from` to the one before `to`, else once with 0. */
	int from, to;
	int (*rounds)(void); /* `to`, if it is not known before main() */
	int signal, status;  /* how the process of the test ends */
	/* Of a case. */
	void (*setup)(void), (*teardown)(void);
	double timeout; /* of each test, in seconds; 0: CK_DEFAULT_TIMEOUT */
	/* Of either: why it cannot run here; NULL: it can. */
	const char *(*skip)(void);
};

struct test_entry {
	TTest test; /* `fn` is NULL: a case */
	struct test_options options;
};

/* The linker makes a table of the entries: main() finds it by the name of the section. */
#define TEST_ENTRY(symbol, ...)                                                                    \
	static const struct test_entry symbol = { __VA_ARGS__ };                                   \
	static const struct test_entry *const symbol##_at                                          \
	    __attribute__((used, section("tdt_tests"))) = &symbol;
#define TEST_ENTRY_OF(symbol, ...) TEST_ENTRY(symbol, __VA_ARGS__)
#define TEST_CASE_OF(line) test_case_of_line_##line
#define TEST_CASE_AT(line) TEST_CASE_OF(line)

#define CASE(name, ...)                                                                            \
	TEST_ENTRY_OF(TEST_CASE_AT(__LINE__), { #name, NULL, __FILE__, __LINE__ }, { __VA_ARGS__ })

#define TEST(name, ...)                                                                            \
	static void name(int _i);                                                                  \
	TEST_ENTRY(name##_entry, { #name, name, __FILE__, __LINE__ }, { __VA_ARGS__ })             \
	static void name(int _i)

/* Why the whole suite cannot run, which is printed; NULL: it can. */
#define SUITE_SKIP(why)                                                                            \
	const char *test_suite_skip(void)                                                          \
	{                                                                                          \
		return why;                                                                        \
	}
const char *test_suite_skip(void);

/* Leave the test, and say why a part of it, or all, cannot be tried here. */
#define NOT_TRIED_IF(condition, why)                                                               \
	do {                                                                                       \
		if (condition) {                                                                   \
			puts("# not tried: " why);                                                 \
			return;                                                                    \
		}                                                                                  \
	} while (0)

/* `call` is refused, and errno says `error`: it returns that, too, or NULL. */
#define ck_assert_fails(call, error)                                                               \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_int_eq(call, -(error));                                                  \
		ck_assert_int_eq(errno, error);                                                    \
	} while (0)
#define ck_assert_ptr_fails(call, error)                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		ck_assert_ptr_null(call);                                                          \
		ck_assert_int_eq(errno, error);                                                    \
	} while (0)

/* The text, for the caller to free, that the statement `...` writes to the FILE `out`. */
#define TEXT_WRITTEN(out, ...)                                                                     \
	({                                                                                         \
		char *text_written = NULL;                                                         \
		size_t text_size;                                                                  \
		FILE *out = open_memstream(&text_written, &text_size);                             \
                                                                                                   \
		MUST(out != NULL);                                                                 \
		__VA_ARGS__;                                                                       \
		MUST(fclose(out) == 0);                                                            \
		text_written;                                                                      \
	})

/* Declare that text, which is freed at the end of the block. */
#define WRITTEN(name, out, ...) SCOPED(scoped_text_end) char *name = TEXT_WRITTEN(out, __VA_ARGS__)

static inline void threads_start(pthread_t *threads, size_t n, void *(*run)(void *), void *arg)
{
	for (size_t i = 0; i < n; i++)
		MUST(pthread_create(&threads[i], NULL, run, arg) == 0);
}

static inline void threads_join(const pthread_t *threads, size_t n)
{
	for (size_t i = 0; i < n; i++)
		MUST(pthread_join(threads[i], NULL) == 0);
}

/* Run `run` with `arg` on a thread of its own, to its end. */
static inline void run_on_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	MUST(pthread_create(&thread, NULL, run, arg) == 0);
	MUST(pthread_join(thread, NULL) == 0);
}

/* Wait for a child of the test.  Returns as what it ended, which is 0 if all went well. */
static inline int child_status(pid_t child)
{
	int status = -1;

	MUST(child > 0 && waitpid(child, &status, 0) == child);
	return status;
}

/*
 * Have a child of fork() do the block that follows; it must end well, and then the test goes on:
 *
 *	IN_A_CHILD {
 *		MUST(...);
 *	}
 */
#define IN_A_CHILD for (pid_t test_child = test_fork(); test_child_goes_on(&test_child, __LINE__);)

static inline pid_t test_fork(void)
{
	pid_t child = fork();

	MUST(child >= 0);
	return child;
}

static inline bool test_child_goes_on(pid_t *child, int line)
{
	if (*child == -1)
		_exit(0); /* the child has done the block */
	if (*child == 0) {
		*child = -1;
		return true;
	}
	must(child_status(*child) == 0, "a child ends well", line);
	return false;
}

/*
 * A suite that runs its own program for a test defines this: it is main() if the first argument
 * names no test.
 */
int test_play(int argc, char **argv);

/*
 * Have the stack reach that far down: valgrind does not let it grow for a handler with SA_ONSTACK,
 * as is that of a poll that is read while it goes on.
 */
static __attribute__((noinline, unused)) void test_grow_stack(void)
{
	volatile char room[1 << 18];

	for (size_t i = sizeof room; i > 0; i -= 1024)
		room[i - 1] = 0;
}

/* Run `suite` and free it.  Returns what main() is to return. */
static inline int test_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	test_grow_stack();
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
