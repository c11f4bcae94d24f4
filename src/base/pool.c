// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The stack of indexes, and the chunks of memory that hold the items. */

#include "base/pool.h"

#include <stddef.h>
#include <stdlib.h>

/* The number of items in a chunk. */
static uint32_t per_chunk(const struct tdt__pool *pool)
{
	return pool->size < TDT__POOL_CHUNK_SIZE ? (uint32_t)TDT__POOL_CHUNK_SIZE / pool->size : 1;
}

struct tdt__pool_item *tdt__pool_at(const struct tdt__pool *pool, uint32_t index)
{
	uint32_t n = per_chunk(pool);
	char *chunk;

	if (index == 0)
		return NULL;
	/*
	 * Relaxed: a thread that knows the index acquired the chunk's address together with the
	 * head, or with the index.
	 */
	chunk = atomic_load_explicit(&pool->chunk[(index - 1) / n], memory_order_relaxed);
	return (void *)(chunk + (size_t)((index - 1) % n) * pool->size);
}

static uint64_t next_head(uint64_t head, uint32_t index)
{
	return ((head >> 32) + 1) << 32 | index;
}

struct tdt__pool_item *tdt__pool_take(struct tdt__pool *pool)
{
	/*
	 * Acquire what was done with the item before it was given back.  Pairs with
	 * tdt__pool_give().
	 */
	uint64_t head = atomic_load_explicit(&pool->head, memory_order_acquire);
	struct tdt__pool_item *item;
	uint32_t next;

	do {
		item = tdt__pool_at(pool, (uint32_t)head);
		if (item == NULL) {
			atomic_fetch_add_explicit(&pool->missed, 1, memory_order_relaxed);
			return NULL;
		}
		/*
		 * If another thread took the item meanwhile, `next` may be any value.  Then the
		 * head has changed, and the exchange fails.
		 */
		next = atomic_load_explicit(&item->next, memory_order_relaxed);
	} while (!atomic_compare_exchange_weak_explicit(
	    &pool->head, &head, next_head(head, next), memory_order_acquire, memory_order_acquire));
	atomic_fetch_add_explicit(&pool->taken, 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&pool->stock, 1, memory_order_relaxed);
	return item;
}

void tdt__pool_give(struct tdt__pool *pool, struct tdt__pool_item *item)
{
	uint64_t head = atomic_load_explicit(&pool->head, memory_order_relaxed);

	atomic_fetch_add_explicit(&pool->stock, 1, memory_order_relaxed);
	do
		atomic_store_explicit(&item->next, (uint32_t)head, memory_order_relaxed);
	/*
	 * Release what was done with the item to the thread that takes it.  Pairs with
	 * tdt__pool_take().
	 */
	while (!atomic_compare_exchange_weak_explicit(&pool->head, &head,
						      next_head(head, item->index),
						      memory_order_release, memory_order_relaxed));
}

struct tdt__pool_item *tdt__pool_make(struct tdt__pool *pool)
{
	uint32_t n = per_chunk(pool), number = pool->made / n;
	struct tdt__pool_item *item;
	char *chunk;

	if (number == TDT__POOL_CHUNKS)
		return NULL;
	chunk = atomic_load_explicit(&pool->chunk[number], memory_order_relaxed);
	if (chunk == NULL)
		chunk = aligned_alloc(64, ((size_t)n * pool->size + 63) & ~(size_t)63);
	if (chunk == NULL)
		return NULL;
	/*
	 * Relaxed: other threads reach the chunk only by indexes that are put into the pool later.
	 */
	atomic_store_explicit(&pool->chunk[number], chunk, memory_order_relaxed);
	item = (void *)(chunk + (size_t)(pool->made % n) * pool->size);
	item->index = ++pool->made;
	atomic_init(&item->next, 0);
	return item;
}
