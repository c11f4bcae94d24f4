// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Open addressing with linear probing.  At most half the slots are taken, so most searches end
 * after one or two slots.  When more slots are needed, their number is doubled, so adding an entry
 * takes constant time on average.
 */

#include "base/index.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_SLOTS 16

void tdt__index_add(struct tdt__index *index, uint32_t hash, uint32_t entry)
{
	size_t at = hash & (index->slots - 1);

	while (index->slot[at].entry != 0)
		at = (at + 1) & (index->slots - 1);
	index->slot[at] = (struct tdt__index_slot){ .hash = hash, .entry = entry + 1 };
}

int tdt__index_reserve(struct tdt__index *index, size_t n)
{
	struct tdt__index larger = { .slots = FIRST_SLOTS };

	if (n <= index->slots / 2)
		return 0;
	if (n >= TDT__INDEX_NONE)
		return -ENOMEM;
	while (larger.slots / 2 < n)
		larger.slots *= 2;
	larger.slot = calloc(larger.slots, sizeof larger.slot[0]);
	if (larger.slot == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < index->slots; i++)
		if (index->slot[i].entry != 0)
			tdt__index_add(&larger, index->slot[i].hash, index->slot[i].entry - 1);
	free(index->slot);
	*index = larger;
	return 0;
}

void tdt__index_fini(struct tdt__index *index)
{
	free(index->slot);
}
