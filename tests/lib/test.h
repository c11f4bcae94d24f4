/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

/* What every program with Check ends in. */

#include <check.h>
#include <stdlib.h>

#include "lib/rested_fork.h"

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
