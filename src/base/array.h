/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Arrays on the heap that grow, as the owner appends entries. */

#include <stdbool.h>
#include <stddef.h>

#include "base/index.h"

/*
 * Make room for another entry of `size` bytes behind the first `n` ones.  `array` points to the
 * pointer to the array, which the owner frees; `*room` is for how many entries there is room, at
 * first 0.  False: there is no memory, and the array is as it was.
 */
bool tdt__array_grow(void *array, size_t n, size_t *room, size_t size);

/*
 * Of an array of `n` entries of `size` bytes, each of which begins with a uint64_t, in the order of
 * these: how many begin with `key`, or with less.
 */
size_t tdt__array_up_to(const void *array, size_t n, size_t size, uint64_t key);

/* Bring such an array in that order. */
void tdt__array_sort(void *array, size_t n, size_t size);

/* Such an array whose entries are found by an index.  All zero: it is empty. */
struct tdt__table {
	void *entry;
	size_t n, room;
	struct tdt__index index;
};

/*
 * The members of a table of entries of `type`: the array `entry`, the number `n` of its entries,
 * and `entry`_table, which the functions take.
 */
#define TDT__TABLE(type, entry, n)                                                                 \
	union {                                                                                    \
		struct tdt__table entry##_table;                                                   \
		struct {                                                                           \
			__typeof__(type) *entry;                                                   \
			size_t n;                                                                  \
		};                                                                                 \
	}

/*
 * Add a copy of an entry of `size` bytes under its hash (base/index.h).  Returns its number;
 * TDT__INDEX_NONE: there is no memory, and the table is as it was.
 */
uint32_t tdt__table_add(struct tdt__table *table, uint32_t hash, const void *entry, size_t size);

/*
 * In a table whose entries of `size` bytes begin with their keys, which are `key_size` bytes
 * without padding, and of which no two are the same: the number of the entry with that key.
 * TDT__INDEX_NONE: there is none.
 */
uint32_t tdt__table_find(const struct tdt__table *table, const void *key, size_t key_size,
			 size_t size);

/* The same, and add a copy of the entry that begins with the key, if there is none. */
uint32_t tdt__table_note(struct tdt__table *table, const void *entry, size_t key_size, size_t size);

void tdt__table_fini(struct tdt__table *table);
