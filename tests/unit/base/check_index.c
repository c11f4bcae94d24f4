// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers base/index.  The index finds entries of an array by hash and key, whatever collides and
 * however it grows.
 */

#include "base/index.h"
#include "lib/test.h"

#define MOST 100000

/* The array whose entries are found; its entries are their own keys. */
static uint64_t key[MOST];
static uint32_t n;
static struct tdt__index the_index;

/* The hash that a test wants. */
typedef uint32_t hash_fn(uint64_t key);

static uint32_t mixed(uint64_t key_of_one)
{
	return (uint32_t)tdt__mix(0, key_of_one);
}

static uint32_t all_alike(uint64_t key_of_one)
{
	return 7;
}

/* The last slot of every size: each search after the first entry wraps around. */
static uint32_t at_the_end(uint64_t key_of_one)
{
	return UINT32_MAX;
}

/* One slot for all, whatever the size, but no hash twice. */
static uint32_t low_bits_alike(uint64_t key_of_one)
{
	return (uint32_t)key_of_one << 20;
}

static void begin(void)
{
	n = 0;
	the_index = (struct tdt__index){ 0 };
}

static uint32_t find(uint64_t sought, hash_fn *hash)
{
	size_t tried = 0;
	uint32_t i;

	do {
		i = tdt__index_next(&the_index, hash(sought), &tried);
	} while (i != TDT__INDEX_NONE && key[i] != sought);
	return i;
}

static void add(uint64_t added, hash_fn *hash)
{
	ck_assert_int_eq(tdt__index_reserve(&the_index, (size_t)n + 1), 0);
	key[n] = added;
	tdt__index_add(&the_index, hash(added), n++);
}

/* Add the keys 0, 3, 6 and so on, one by one. */
static void add_many(uint32_t many, hash_fn *hash)
{
	begin();
	for (uint32_t i = 0; i < many; i++)
		add(3 * (uint64_t)i, hash);
}

static void expect_many(uint32_t many, hash_fn *hash)
{
	for (uint32_t i = 0; i < many; i++)
		ck_assert_uint_eq(find(3 * (uint64_t)i, hash), i);
	for (uint32_t i = 0; i < many; i++)
		ck_assert_uint_eq(find(3 * (uint64_t)i + 1, hash), TDT__INDEX_NONE);
	tdt__index_fini(&the_index);
}

CASE(finding)

TEST(nothing_is_found_where_nothing_was_added)
{
	begin();
	ck_assert_uint_eq(find(0, mixed), TDT__INDEX_NONE);
	ck_assert_int_eq(tdt__index_reserve(&the_index, 0), 0);
	ck_assert_uint_eq(find(0, mixed), TDT__INDEX_NONE);
	ck_assert_int_eq(tdt__index_reserve(&the_index, 1), 0);
	ck_assert_uint_eq(find(0, mixed), TDT__INDEX_NONE);
	tdt__index_fini(&the_index);
}

TEST(every_entry_is_found_and_nothing_else)
{
	add_many(times_here(MOST), mixed);
	expect_many(times_here(MOST), mixed);
}

TEST(entries_with_one_hash_are_told_apart_by_their_keys)
{
	add_many(300, all_alike);
	expect_many(300, all_alike);
}

TEST(a_search_goes_on_at_the_first_slot_after_the_last)
{
	add_many(300, at_the_end);
	expect_many(300, at_the_end);
}

TEST(entries_with_one_slot_and_different_hashes_are_found)
{
	add_many(300, low_bits_alike);
	expect_many(300, low_bits_alike);
}

TEST(only_entries_with_the_hash_are_offered)
{
	uint32_t offered = 0, i;
	size_t tried = 0;

	add_many(300, low_bits_alike);
	while ((i = tdt__index_next(&the_index, low_bits_alike(30), &tried)) != TDT__INDEX_NONE) {
		ck_assert_uint_eq(i, 10);
		offered++;
	}
	ck_assert_uint_eq(offered, 1);
	tdt__index_fini(&the_index);
}

CASE(memory)

TEST(room_that_was_reserved_needs_no_more_memory)
{
	const struct tdt__index_slot *before;

	begin();
	ck_assert_int_eq(tdt__index_reserve(&the_index, 1000), 0);
	before = the_index.slot;
	for (uint32_t i = 0; i < 1000; i++)
		add(3 * (uint64_t)i, mixed);
	ck_assert_ptr_eq(the_index.slot, before);
	expect_many(1000, mixed);
}

TEST(half_of_the_slots_stay_free)
{
	begin();
	for (uint32_t i = 0; i < 5000; i++) {
		add(i, mixed);
		ck_assert_uint_le(2 * (size_t)n, the_index.slots);
		ck_assert_uint_eq(the_index.slots & (the_index.slots - 1), 0);
	}
	tdt__index_fini(&the_index);
}

static int reserve_a_thousand(void *argument)
{
	struct tdt__index index = { 0 };
	int error = tdt__index_reserve(&index, 1000);

	tdt__index_fini(&index);
	return error;
}

TEST(without_memory_reserving_says_so)
{
	no_memory_each(reserve_a_thousand, NULL, 1);
}

TEST(without_memory_the_entries_that_are_there_are_still_found)
{
	int no_more, one_more;
	size_t full;

	NEEDS_FAILING_MEMORY();
	add_many(300, mixed);
	full = the_index.slots / 2;
	no_memory_begin(0); /* Check's assertions need memory, too */
	no_more = tdt__index_reserve(&the_index, full);
	one_more = tdt__index_reserve(&the_index, full + 1);
	no_memory_end();
	ck_assert_int_eq(no_more, 0);
	ck_assert_int_eq(one_more, -ENOMEM);
	expect_many(300, mixed);
}

TEST(more_entries_than_have_numbers_are_refused)
{
	begin();
	ck_assert_int_eq(tdt__index_reserve(&the_index, UINT32_MAX), -ENOMEM);
	ck_assert_int_eq(tdt__index_reserve(&the_index, SIZE_MAX), -ENOMEM);
	ck_assert_ptr_null(the_index.slot);
}

CASE(hashes)

TEST(hashes_of_near_numbers_differ_in_the_low_bits)
{
	static bool used[1 << 12];
	unsigned different = 0;

	for (uint64_t i = 0; i < sizeof used / 2; i++) {
		bool *slot = &used[tdt__mix(0, i << 6) % sizeof used];

		different += !*slot;
		*slot = true;
	}
	/* Random slots would be 39 % of 4,096, which is 1,611. */
	ck_assert_uint_gt(different, 1500);
}

TEST(bytes_are_hashed_in_parts_as_in_one)
{
	uint64_t whole = tdt__hash_bytes(TDT__HASH_START, "abcdef", 6);
	uint64_t first = tdt__hash_bytes(TDT__HASH_START, "abc", 3);

	ck_assert_uint_eq(tdt__hash_bytes(first, "def", 3), whole);
	ck_assert_uint_ne(tdt__hash_bytes(TDT__HASH_START, "abcdfe", 6), whole);
	ck_assert_uint_eq(tdt__hash_bytes(TDT__HASH_START, "", 0), TDT__HASH_START);
	/* The published value of FNV-1a. */
	ck_assert_uint_eq(tdt__hash_bytes(TDT__HASH_START, "a", 1), UINT64_C(0xaf63dc4c8601ec8c));
}
