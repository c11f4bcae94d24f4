// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Counting by age: see profile_ages.h. */

#include "reader/profile_ages.h"

/* The first bin has all ages below 2^14 ns, and the last one all from 7 * 2^31 ns (15 s) on. */
#define FIRST_OCTAVE 14
#define IN_OCTAVE 4

/* So many looks are enough for a cell: with fewer, their number would be chance again. */
#define LOOKS_ENOUGH 16

unsigned tdt__age_bin(uint64_t ns)
{
	unsigned octave, bin;

	if (ns >> FIRST_OCTAVE == 0)
		return 0;
	octave = 63 - (unsigned)__builtin_clzll(ns);
	bin = 1 + (octave - FIRST_OCTAVE) * IN_OCTAVE + (ns >> (octave - 2)) % IN_OCTAVE;
	return bin < TDT__AGE_BINS ? bin : TDT__AGE_BINS - 1;
}

uint64_t tdt__age_begin(unsigned bin)
{
	if (bin == 0)
		return 0;
	return (uint64_t)(IN_OCTAVE + (bin - 1) % IN_OCTAVE)
	       << (FIRST_OCTAVE - 2 + (bin - 1) / IN_OCTAVE);
}

unsigned tdt__age_cell(const uint64_t looks[TDT__AGE_BINS], unsigned first)
{
	uint64_t in_cell = 0, left = 0;
	unsigned end = first;

	while (end < TDT__AGE_BINS && in_cell < LOOKS_ENOUGH)
		in_cell += looks[end++];
	for (unsigned i = end; i < TDT__AGE_BINS; i++)
		left += looks[i];
	return left < LOOKS_ENOUGH ? TDT__AGE_BINS : end;
}

void tdt__young_see(struct tdt__young_trees *young, double weight, unsigned age, unsigned until)
{
	young->looks[age]++;
	young->weight[age] += weight;
	young->until[until] += weight;
}

/* The weights as they would be if trees had been seen at all young ages alike. */
static void expect(const struct tdt__young_trees *young, double expected[TDT__AGE_BINS])
{
	double each = 0; /* for a nanosecond of the age */

	expected[TDT__AGE_BINS - 1] = 0;
	for (unsigned i = TDT__AGE_BINS - 1; i > 0; i--) {
		uint64_t begin = tdt__age_begin(i);

		each += young->until[i] / (double)begin;
		expected[i - 1] = each * (double)(begin - tdt__age_begin(i - 1));
	}
}

void tdt__young_scale(const struct tdt__young_trees *young, double scale[TDT__AGE_BINS])
{
	double expected[TDT__AGE_BINS];
	unsigned end;

	expect(young, expected);
	for (unsigned first = 0; first < TDT__AGE_BINS; first = end) {
		double in_cell = 0, weight = 0;

		end = tdt__age_cell(young->looks, first);
		for (unsigned i = first; i < end; i++) {
			in_cell += expected[i];
			weight += young->weight[i];
		}
		for (unsigned i = first; i < end; i++)
			scale[i] = weight > 0 ? in_cell / weight : 1;
	}
}
