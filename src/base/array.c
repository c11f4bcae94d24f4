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

bool tdt__array_grow_indexed(void *array, size_t n, size_t *room, size_t size,
			     struct tdt__index *index)
{
	return n < *room || (tdt__index_reserve(index, next_room(*room)) == 0 &&
			     tdt__array_grow(array, n, room, size));
}
