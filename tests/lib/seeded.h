/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_SEEDED_H
#define TESTS_SEEDED_H

/*
 * Choices at random that can be made again: a test takes its seed from TDT_TEST_SEED, if that is
 * set, and prints it.
 */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The seed of this run. */
static inline unsigned seed_of_run(void)
{
	const char *given = getenv("TDT_TEST_SEED");
	unsigned seed = given != NULL ? (unsigned)strtoul(given, NULL, 0) : (unsigned)time(NULL);

	printf("# TDT_TEST_SEED=%u\n", seed);
	fflush(stdout);
	return seed;
}

/* The next number from 0 to `n` - 1. */
static inline unsigned random_below(unsigned *state, unsigned n)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 16) % n;
}

#endif
