/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_TEST_H
#define TESTS_TEST_H

/* What every program with Check ends in. */

#include <check.h>
#include <stdlib.h>

/* Run `suite` and free it.  Returns what main() is to return. */
static inline int test_run(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
