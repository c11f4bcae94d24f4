// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers base/array.  An array has room for each entry that is appended, or is as it was. */

#include <config.h>

#include <stdlib.h>

#include "base/array.h"
#include "lib/no_memory.h"
#include "lib/test.h"

#define MANY 1000u

static uint32_t *entries;
static size_t n, room;
static struct tdt__index by_value;

static bool append(bool indexed)
{
	bool grown = indexed ? tdt__array_grow_indexed(&entries, n, &room, sizeof *entries,
						       &by_value)
			     : tdt__array_grow(&entries, n, &room, sizeof *entries);

	if (!grown)
		return false;
	entries[n] = (uint32_t)n;
	if (indexed)
		tdt__index_add(&by_value, (uint32_t)n, (uint32_t)n);
	n++;
	return true;
}

static void end_array(void)
{
	tdt__index_fini(&by_value);
	free(entries);
}

CASE(growing, .teardown = end_array)

TEST(entries_stay_as_they_were)
{
	while (n < MANY)
		ck_assert(append(false));
	ck_assert_uint_ge(room, MANY);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(entries[i], i);
}

TEST(each_entry_can_be_added_to_the_index)
{
	uint32_t i;

	while (n < MANY)
		ck_assert(append(true));
	for (uint32_t value = 0; value < MANY; value++) {
		TDT__INDEX_EACH (i, &by_value, value)
			if (entries[i] == value)
				break;
		ck_assert_uint_eq(i, value);
	}
	TDT__INDEX_EACH (i, &by_value, MANY)
		ck_abort_msg("an entry that is not there");
	ck_assert_uint_eq(i, TDT__INDEX_NONE);
}

TEST(without_memory_the_array_is_as_it_was)
{
	size_t before;
	bool grown, grown_indexed;

	if (!no_memory_possible())
		return;
	while (n == 0 || n < room)
		ck_assert(append(true));
	before = room;
	no_memory_begin(0); /* Check's assertions need memory, too */
	grown = append(false);
	grown_indexed = append(true);
	no_memory_end();
	ck_assert(!grown && !grown_indexed);
	ck_assert_uint_eq(room, before);
	ck_assert_uint_eq(entries[n - 1], n - 1);
	ck_assert(append(true));
}
