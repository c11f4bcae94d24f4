// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Chunks of memory, filled from their beginning. */

#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/*
 * Of a chunk.  The first is small, because most trees are one stack, and most programs have few
 * tasks; each further chunk is twice as large.
 */
enum { FIRST_CHUNK_BYTES = 2048, CHUNK_BYTES = 256 * 1024 - 64 };

struct tdt__arena_chunk {
	struct tdt__arena_chunk *next;
	size_t used;
	size_t size;
	alignas(max_align_t) unsigned char bytes[];
};

static void *take_aligned(struct tdt__arena *arena, size_t size, size_t align)
{
	struct tdt__arena_chunk *chunk = arena->chunk;
	size_t at = chunk == NULL ? 0 : (chunk->used + align - 1) & ~(align - 1);

	if (chunk == NULL || at > chunk->size || chunk->size - at < size) {
		size_t room = chunk == NULL ? FIRST_CHUNK_BYTES - sizeof *chunk : 2 * chunk->size;

		if (room > CHUNK_BYTES)
			room = CHUNK_BYTES;
		if (room < size)
			room = size;
		chunk = malloc(sizeof *chunk + room);
		if (chunk == NULL)
			return NULL;
		*chunk = (struct tdt__arena_chunk){ .next = arena->chunk, .size = room };
		arena->chunk = chunk;
		at = 0;
	}
	chunk->used = at + size;
	return chunk->bytes + at;
}

void *tdt__arena_take(struct tdt__arena *arena, size_t size)
{
	return take_aligned(arena, size, alignof(max_align_t));
}

char *tdt__arena_text(struct tdt__arena *arena, const void *bytes, size_t n)
{
	char *copy = take_aligned(arena, n + 1, 1);

	if (copy == NULL)
		return NULL;
	if (n != 0)
		memcpy(copy, bytes, n);
	copy[n] = '\0';
	return copy;
}

void tdt__arena_fini(struct tdt__arena *arena)
{
	while (arena->chunk != NULL) {
		struct tdt__arena_chunk *chunk = arena->chunk;

		arena->chunk = chunk->next;
		free(chunk);
	}
}
