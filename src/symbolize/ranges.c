// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Ranges of addresses as a sorted array. */

#include "symbolize/ranges.h"

#include <stdlib.h>

#include "base/array.h"

bool tdt__ranges_add(struct tdt__ranges *ranges, uint64_t low, uint64_t high, uint64_t value)
{
	if (!tdt__array_grow(&ranges->range, ranges->n, &ranges->room, sizeof(*ranges->range)))
		return false;
	ranges->range[ranges->n++] =
	    (struct tdt__range){ .low = low, .high = high, .value = value };
	return true;
}

static int in_order(const void *left, const void *right)
{
	const struct tdt__range *a = left;
	const struct tdt__range *b = right;

	if (a->low != b->low)
		return a->low < b->low ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

void tdt__ranges_sort(struct tdt__ranges *ranges)
{
	uint64_t reach = 0;

	if (ranges->n == 0)
		return;
	qsort(ranges->range, ranges->n, sizeof(*ranges->range), in_order);
	for (size_t i = 0; i < ranges->n; i++) {
		if (ranges->range[i].high > reach)
			reach = ranges->range[i].high;
		ranges->range[i].reach = reach;
	}
}

/* How many ranges begin at `address` or before it. */
static size_t begun_at(const struct tdt__ranges *ranges, uint64_t address)
{
	return tdt__array_up_to(ranges->range, ranges->n, sizeof(*ranges->range), address);
}

size_t tdt__ranges_from(const struct tdt__ranges *ranges, uint64_t low)
{
	return low == 0 ? 0 : begun_at(ranges, low - 1);
}

const struct tdt__range *tdt__ranges_find(const struct tdt__ranges *ranges, uint64_t address)
{
	size_t from = begun_at(ranges, address);

	/*
	 * The nearest range that begins before `address` may end before it too, inside a longer
	 * range.
	 */
	while (from-- > 0 && ranges->range[from].reach > address) {
		if (ranges->range[from].high > address)
			return &ranges->range[from];
	}
	return NULL;
}

void tdt__ranges_clear(struct tdt__ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct tdt__ranges){ 0 };
}
