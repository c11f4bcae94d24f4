/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_MUST_H
#define TESTS_MUST_H

/*
 * For what runs on threads and in children of a test: Check's assertions take a lock of Check's,
 * and don't end a test from another thread.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define MUST(condition) must(condition, #condition, __LINE__)

static inline void must(bool condition, const char *what, int line)
{
	if (condition)
		return;
	printf("# line %d: not so: %s\n", line, what);
	fflush(stdout);
	abort();
}

#endif
