/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_TRUTH_RANDOM_H
#define TESTS_TRUTH_RANDOM_H

/* Choices of the generators: the same seed makes the same. */

#include <stdbool.h>
#include <stdint.h>

static uint64_t random_state; /* the seed, to begin with */

/* From 0 to n - 1.  (splitmix64: seeds that are near each other have nothing in common.) */
static inline int below(int n)
{
	uint64_t z = random_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (int)((z ^ z >> 31) % (uint64_t)n);
}

static inline bool one_in(int n)
{
	return below(n) == 0;
}

#define PICK(words) ((words)[below((int)(sizeof(words) / sizeof((words)[0])))])

#endif
