/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The ages of waits: for how long a task has waited when a look finds it.  Ages are counted in
 * bins, four to an octave.
 *
 * All trees of one tick are captured in the moments after it, so a look finds all short waits of
 * the tick fresh, or none.  How many looks come in those moments is chance, and a profile of some
 * hundred looks would be several per cent off.  But it is known at which ages the looks saw trees:
 * a look sees a *young* tree also when the wait that it is of is over.  A tree is young as long as
 * the watch cannot have put another one in its place.  So each young tree could have been seen at
 * each age as well, and bins of ages in which trees were seen too often or too rarely are scaled.
 */

#include <stdint.h>

#define TDT__AGE_BINS 81

/* The bin of an age in nanoseconds. */
unsigned tdt__age_bin(uint64_t ns);

/* The age at which a bin begins, in nanoseconds. */
uint64_t tdt__age_begin(unsigned bin);

/*
 * Bins with few looks are taken together with those after them, as one cell: returns the bin after
 * the cell that begins with the bin `first`.
 */
unsigned tdt__age_cell(const uint64_t looks[TDT__AGE_BINS], unsigned first);

/* The young trees of one shape, of tasks of one name. */
struct tdt__young_trees {
	uint32_t name; /* the key: the numbers that the sum of a profile gives them */
	uint32_t tree;
	uint64_t looks[TDT__AGE_BINS]; /* that saw one of this age */
	double weight[TDT__AGE_BINS];  /* of these */
	double until[TDT__AGE_BINS];   /* the same weights, by the age at which a tree is no
					  longer young */
};

/* A look, with this weight, saw a young tree.  Of the two bins, `age` is the smaller. */
void tdt__young_see(struct tdt__young_trees *young, double weight, unsigned age, unsigned until);

/* By how much to multiply the weights of young trees of each age. */
void tdt__young_scale(const struct tdt__young_trees *young, double scale[TDT__AGE_BINS]);
