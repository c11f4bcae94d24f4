// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers base/array, base/texts.  An array has room for each entry that is appended, or is as it
 * was; and texts have numbers.
 */

#include "base/texts.h"
#include "lib/test.h"

#define MANY 1000u

static TDT__TABLE(uint32_t, entries, n) table;

/* To the array alone, or under its value. */
static bool append(bool indexed)
{
	uint32_t value = (uint32_t)table.n;

	if (indexed)
		return tdt__table_add(&table.entries_table, value, &value, sizeof value) == value;
	if (!tdt__array_grow(&table.entries, table.n, &table.entries_table.room, sizeof value))
		return false;
	table.entries[table.n++] = value;
	return true;
}

static void end_array(void)
{
	tdt__table_fini(&table.entries_table);
}

CASE(growing, .teardown = end_array)

TEST(entries_stay_as_they_were)
{
	while (table.n < MANY)
		ck_assert(append(false));
	ck_assert_uint_ge(table.entries_table.room, MANY);
	for (size_t i = 0; i < MANY; i++)
		ck_assert_uint_eq(table.entries[i], i);
}

/* Keys of all lengths, of which the entries are the first bytes. */
TEST(an_entry_is_noted_once_under_its_key)
{
	unsigned char keys[4] = "abc";
	static TDT__TABLE(unsigned char[4], noted, n) noted;

	for (size_t size = 1; size <= sizeof keys; size++) {
		keys[size - 1] ^= 0x80;
		ck_assert_uint_eq(tdt__table_find(&noted.noted_table, keys, size, sizeof keys),
				  TDT__INDEX_NONE);
		for (int i = 0; i < 2; i++)
			ck_assert_uint_eq(
				tdt__table_note(&noted.noted_table, keys, size, sizeof keys), 0);
		ck_assert_uint_eq(tdt__table_find(&noted.noted_table, keys, size, sizeof keys), 0);
		ck_assert_uint_eq(noted.n, 1);
		tdt__table_fini(&noted.noted_table);
	}
}

TEST(entries_in_order_are_found_by_what_they_begin_with)
{
	static const struct {
		uint64_t key, other;
	} sorted[] = { { 3, 9 }, { 5, 1 }, { 5, 2 }, { UINT64_MAX, 0 } };
	static const struct {
		uint64_t key;
		size_t n;
	} found[] = { { 0, 0 }, { 2, 0 }, { 3, 1 }, { 4, 1 }, { 5, 3 }, { UINT64_MAX, 4 } };

	for (size_t i = 0; i < sizeof found / sizeof found[0]; i++)
		ck_assert_uint_eq(
			tdt__array_up_to(sorted, 4, sizeof sorted[0], found[i].key), found[i].n);
	ck_assert_uint_eq(tdt__array_up_to(NULL, 0, sizeof sorted[0], 1), 0);
}

TEST(each_entry_can_be_added_to_the_index)
{
	uint32_t i;

	while (table.n < MANY)
		ck_assert(append(true));
	for (uint32_t value = 0; value < MANY; value++) {
		TDT__INDEX_EACH (i, &table.entries_table.index, value)
			if (table.entries[i] == value)
				break;
		ck_assert_uint_eq(i, value);
	}
	TDT__INDEX_EACH (i, &table.entries_table.index, MANY)
		ck_abort_msg("an entry that is not there");
	ck_assert_uint_eq(i, TDT__INDEX_NONE);
}

TEST(without_memory_the_array_is_as_it_was)
{
	size_t before;
	bool grown, grown_indexed;

	NEEDS_FAILING_MEMORY();
	while (table.n == 0 || table.n < table.entries_table.room)
		ck_assert(append(true));
	before = table.entries_table.room;
	no_memory_begin(0); /* Check's assertions need memory, too */
	grown = append(false);
	grown_indexed = append(true);
	no_memory_end();
	ck_assert(!grown && !grown_indexed);
	ck_assert_uint_eq(table.entries_table.room, before);
	ck_assert_uint_eq(table.entries[table.n - 1], table.n - 1);
	ck_assert(append(true));
}

/* --- Texts -------------------------------------------------------------------------- */

static struct tdt__texts texts;

static void end_texts(void)
{
	tdt__texts_fini(&texts);
}

CASE(texts, .teardown = end_texts)

TEST(a_text_has_the_number_that_it_had)
{
	static const char zeros[2] = { 0 };

	ck_assert_uint_eq(tdt__texts_number(&texts, "wait", 4), 0);
	ck_assert_uint_eq(tdt__texts_number(&texts, "wait", 3), 1);
	ck_assert_uint_eq(tdt__texts_number(&texts, NULL, 0), 2);
	ck_assert_uint_eq(tdt__texts_number(&texts, zeros, 1), 3);
	ck_assert_uint_eq(tdt__texts_number(&texts, zeros, 2), 4);
	ck_assert_uint_eq(tdt__texts_number(&texts, "wait", 4), 0);
	ck_assert_uint_eq(tdt__texts_number(&texts, "", 0), 2);
	ck_assert_uint_eq(tdt__texts_number(&texts, zeros, 1), 3);
	ck_assert_str_eq(texts.text[1].bytes, "wai");
	ck_assert_uint_eq(texts.n, 5);
}

TEST(each_of_many_texts_has_a_number_of_its_own)
{
	char text[64] = "a text of several words, whose end differs";

	for (int again = 0; again < 2; again++)
		for (uint32_t i = 0; i < MANY; i++) {
			memcpy(text + 50, &i, sizeof i);
			ck_assert_uint_eq(tdt__texts_number(&texts, text, 50 + sizeof i), i);
		}
}

TEST(without_memory_no_text_gets_a_number)
{
	static const char large[1 << 20];
	uint32_t number;

	NEEDS_FAILING_MEMORY();
	no_memory_begin(0);
	number = tdt__texts_number(&texts, large, sizeof large);
	no_memory_end();
	ck_assert_uint_eq(number, TDT__INDEX_NONE);
	ck_assert_uint_eq(texts.n, 0);
	ck_assert_uint_eq(tdt__texts_number(&texts, large, sizeof large), 0);
}
