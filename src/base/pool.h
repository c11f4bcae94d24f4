/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A pool of items of one size.  Items are made beforehand, on a thread that may allocate, and are
 * taken where nothing may be allocated: on the path of a poll.  They are never given back to
 * malloc: memory that was an item once stays one.
 *
 * The pool is a stack of indexes.  Its head has a tag that changes whenever the head changes.  So
 * if a thread has read the `next` of the topmost item and then exchanges the head successfully,
 * that item was still the topmost one (ABA).
 *
 *                          may overlap with
 *                          take, give   make
 *	tdt__pool_take         yes     yes   no lock, allocation or system call
 *	tdt__pool_give         yes     yes   the same
 *	tdt__pool_make         yes     -     one thread at a time
 */

#include <stdatomic.h>
#include <stdint.h>

#define TDT__POOL_CHUNKS 1024
/* The size of the largest chunk, unless a single item is larger. */
#define TDT__POOL_CHUNK_SIZE ((size_t)262144)

/* Each item begins with this. */
struct tdt__pool_item {
	/* In the pool: the index of the item below, plus 1; 0: this is the last item. */
	_Atomic uint32_t next;
	/* The index of the item itself, plus 1. */
	uint32_t index;
};

struct tdt__pool {
	/* The tag; in the low half, the index of the topmost item, plus 1; 0: the pool is empty. */
	_Alignas(64) _Atomic uint64_t head;
	/*
	 * Relaxed counters: the items that are in the pool now, the items that were taken so far,
	 * and the calls so far that found the pool empty.
	 */
	_Atomic uint32_t stock;
	_Atomic uint32_t taken;
	_Atomic uint32_t missed;

	/*
	 * Only the thread that makes items writes these fields.  `size` is that of an item, a
	 * multiple of 8, and is constant once an item was made.
	 */
	_Alignas(64) uint32_t size;
	uint32_t made;
	char *_Atomic chunk[TDT__POOL_CHUNKS]; /* each released with the indexes of its items */
};

/*
 * Returns the topmost item, which belongs to the caller until it is given back.  NULL: the pool is
 * empty.
 */
struct tdt__pool_item *tdt__pool_take(struct tdt__pool *pool);
void tdt__pool_give(struct tdt__pool *pool, struct tdt__pool_item *item);

/*
 * Make one more item.  It is not in the pool yet, and its memory behind struct tdt__pool_item is
 * not initialized.  NULL: there is no memory, or the pool has its largest size.
 */
struct tdt__pool_item *tdt__pool_make(struct tdt__pool *pool);

/*
 * The item whose `index` is this.  NULL: `index` is 0.  Any thread that knows the index from one
 * that had the item.
 */
struct tdt__pool_item *tdt__pool_at(const struct tdt__pool *pool, uint32_t index);
