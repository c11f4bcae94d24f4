/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_SEEDED_H
#define TESTS_SEEDED_H

/*
 * Choices at random that can be made again: a test takes its seed from TDT_TEST_SEED, if that is
 * set, and prints it.
 *
 * A test that tries the same at very many moments tries a sample of them, at random.  With
 * TDT_TEST_FULL=1 it tries all, as CI does.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* The seed of this run. */
static inline unsigned seed_of_run(void)
{
	const char *given = getenv("TDT_TEST_SEED");
	unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);

	printf("# TDT_TEST_SEED=%u\n", seed);
	fflush(stdout);
	return seed;
}

/* The same in all tests of a program: Check runs each in a child of the program. */
static inline unsigned seed_of_program(void)
{
	const char *given = getenv("TDT_TEST_SEED");
	unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)getppid();

	printf("# TDT_TEST_SEED=%u\n", seed);
	return seed;
}

/* Whether tests try all there is, and not a sample. */
static inline bool test_in_full(void)
{
	const char *full = getenv("TDT_TEST_FULL");

	return full != NULL && full[0] == '1';
}

/* The next number from 0 to `n` - 1. */
static inline unsigned random_below(unsigned *state, unsigned n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 16) % n;
}

#endif
