// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Growing arrays: their room is doubled, so appending an entry takes constant time on average. */

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_ARRAY_ROOM 16

static size_t next_room(size_t room)
{
	return room != 0 ? 2 * room : FIRST_ARRAY_ROOM;
}

bool tdt__array_grow(void *array, size_t n, size_t *room, size_t size)
{
	void *entries;

	if (n < *room)
		return true;
	memcpy(&entries, array, sizeof entries);
	entries = reallocarray(entries, next_room(*room), size);
	if (entries == NULL)
		return false;
	memcpy(array, &entries, sizeof entries);
	*room = next_room(*room);
	return true;
}

size_t tdt__array_up_to(const void *array, size_t n, size_t size, uint64_t key)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (*(const uint64_t *)(const void *)((const char *)array + middle * size) <= key)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int by_first_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

void tdt__array_sort(void *array, size_t n, size_t size)
{
	if (n > 0)
		qsort(array, n, size, by_first_number);
}

uint32_t tdt__table_add(struct tdt__table *table, uint32_t hash, const void *entry, size_t size)
{
	if (table->n >= table->room &&
	    tdt__index_reserve(&table->index, next_room(table->room)) != 0)
		return TDT__INDEX_NONE;
	if (!tdt__array_grow(&table->entry, table->n, &table->room, size))
		return TDT__INDEX_NONE;
	memcpy((char *)table->entry + table->n * size, entry, size);
	tdt__index_add(&table->index, hash, (uint32_t)table->n);
	return (uint32_t)table->n++;
}

/* Most keys are a few numbers. */
static uint32_t hash_of_key(const void *key, size_t size)
{
	uint64_t hash = TDT__HASH_START;
	uint32_t word;
	size_t at = 0;

	for (; size - at >= sizeof word; at += sizeof word) {
		memcpy(&word, (const char *)key + at, sizeof word);
		hash = tdt__mix(hash, word);
	}
	return tdt__hash_fold(tdt__hash_bytes(hash, (const char *)key + at, size - at));
}

uint32_t tdt__table_find(const struct tdt__table *table, const void *key, size_t key_size,
			 size_t size)
{
	uint32_t i;

	TDT__INDEX_EACH (i, &table->index, hash_of_key(key, key_size))
		if (memcmp((const char *)table->entry + i * size, key, key_size) == 0)
			break;
	return i;
}

uint32_t tdt__table_note(struct tdt__table *table, const void *entry, size_t key_size, size_t size)
{
	uint32_t i = tdt__table_find(table, entry, key_size, size);

	return i != TDT__INDEX_NONE
		   ? i
		   : tdt__table_add(table, hash_of_key(entry, key_size), entry, size);
}

void tdt__table_fini(struct tdt__table *table)
{
	free(table->entry);
	tdt__index_fini(&table->index);
	*table = (struct tdt__table){ 0 };
}
