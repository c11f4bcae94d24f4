// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Chunks of memory, filled from their beginning. */

#include "base/arena.h"

#include <stdalign.h>
#include <stdlib.h>

#define CHUNK_BYTES ((size_t)256 * 1024 - 64)

struct tdt__arena_chunk {
	struct tdt__arena_chunk *next;
	size_t used;
	size_t size;
	alignas(max_align_t) unsigned char bytes[];
};

void *tdt__arena_take(struct tdt__arena *arena, size_t size)
{
	struct tdt__arena_chunk *chunk = arena->chunk;
	size_t aligned = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);

	if (chunk == NULL || chunk->size - chunk->used < aligned) {
		size_t room = aligned > CHUNK_BYTES ? aligned : CHUNK_BYTES;

		/* The first chunk is small, because most programs have few tasks. */
		if (chunk == NULL && aligned < CHUNK_BYTES / 32)
			room = CHUNK_BYTES / 32;
		chunk = malloc(sizeof *chunk + room);
		if (chunk == NULL)
			return NULL;
		*chunk = (struct tdt__arena_chunk){ .next = arena->chunk, .size = room };
		arena->chunk = chunk;
	}
	chunk->used += aligned;
	return chunk->bytes + chunk->used - aligned;
}

void tdt__arena_fini(struct tdt__arena *arena)
{
	while (arena->chunk != NULL) {
		struct tdt__arena_chunk *chunk = arena->chunk;

		arena->chunk = chunk->next;
		free(chunk);
	}
}
