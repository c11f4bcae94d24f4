/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A table of address ranges, in which the range that contains an address is found.  Units,
 * functions and symbols are all looked up this way.  A table is first filled, then sorted, then
 * searched.  A struct of all zeros is an empty table.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdt__range {
	uint64_t low; /* [low, high) */
	uint64_t high;
	/* The greatest `high` of this range and all before it: how far back a search must go. */
	uint64_t reach;
	uint64_t value; /* the caller's */
};

struct tdt__ranges {
	struct tdt__range *range;
	size_t n;
	size_t room;
};

/* False: no memory. */
bool tdt__ranges_add(struct tdt__ranges *ranges, uint64_t low, uint64_t high, uint64_t value);

/*
 * Sort by `low`, and ranges with the same `low` by `value`.  Call this after the last
 * tdt__ranges_add() and before the first search.
 */
void tdt__ranges_sort(struct tdt__ranges *ranges);

/* Returns the last range in that order that contains `address`; NULL: none. */
const struct tdt__range *tdt__ranges_find(const struct tdt__ranges *ranges, uint64_t address);

/* Returns the index of the first range that begins at `low` or behind it. */
size_t tdt__ranges_from(const struct tdt__ranges *ranges, uint64_t low);

/* Empty the table, and free its memory. */
void tdt__ranges_clear(struct tdt__ranges *ranges);
