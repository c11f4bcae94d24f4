/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_BASE_POOL_H
#define TDT_SRC_BASE_POOL_H

/*
 * Things of one size that are made beforehand, on a thread that may allocate, and taken where nobody may: on the path of
 * a poll.  They are never given back to malloc: a place that was such a thing once stays one.
 *
 * The pool is a stack of indexes.  Its head has a tag that changes whenever it does, so that who has read the topmost
 * thing's `next` knows that it is that still (ABA).
 *
 *                       overlaps with   take, give, take_all   make
 *	tdt__pool_take                  yes                    yes    lock-free: no lock, allocation, system call
 *	tdt__pool_give                  yes                    yes    the same
 *	tdt__pool_take_all              yes                    yes    the same
 *	tdt__pool_make                  yes                    -      one thread at a time
 */

#include <stdatomic.h>
#include <stdint.h>

#define TDT__POOL_CHUNKS 1024
#define TDT__POOL_CHUNK_SIZE ((size_t)262144) /* at most, if a thing is no larger */

/* What each begins with. */
struct tdt__pool_item {
	_Atomic uint32_t next; /* while it is in the pool: the index of the one below, plus 1; 0: it is the last */
	uint32_t index;        /* its own, plus 1 */
};

struct tdt__pool {
	_Alignas(64) _Atomic uint64_t head; /* the tag, and in the low half the index of the topmost, plus 1; 0: empty */
	/* Relaxed counters: how many are there; and how many were taken, or missed for want of any, so far. */
	_Atomic uint32_t stock;
	_Atomic uint32_t taken;
	_Atomic uint32_t missed;

	/* Who makes: */
	_Alignas(64) uint32_t size; /* of one, a multiple of 8; constant once there is one */
	uint32_t made;
	char *_Atomic chunk[TDT__POOL_CHUNKS]; /* released with the index of what lies in it */
};

/* The topmost, which is the caller's until given back.  NULL: the pool is empty. */
struct tdt__pool_item *tdt__pool_take(struct tdt__pool *pool);
void tdt__pool_give(struct tdt__pool *pool, struct tdt__pool_item *item);

/* All there are, as a list; tdt__pool_next() is to be called before the item is given back. */
struct tdt__pool_item *tdt__pool_take_all(struct tdt__pool *pool);
struct tdt__pool_item *tdt__pool_next(struct tdt__pool *pool, const struct tdt__pool_item *item);

/* One more, not in the pool yet, with nothing behind the item set.  NULL: no memory, or it is large enough. */
struct tdt__pool_item *tdt__pool_make(struct tdt__pool *pool);

/* It was for nothing: the last one that was made is not going to be given. */
void tdt__pool_unmake(struct tdt__pool *pool);

#endif
