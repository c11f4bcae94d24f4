// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The pool of spare captures, and keeping them up to date. */

#include "watch/spare_captures.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <tdt/trace.h>

#include "capture/capture.h"
#include "watch/last_tree.h"

#define FEW 64    /* so many are made first: polls that are in progress at once */
#define MANY 1024 /* so many are made at most: nested polls need one each */

#define WORD_BITS 64

struct spare {
	uint32_t index; /* in `spares` */
	struct tdt__capture capture;
};

/*
 * The first `made` are there, and stay for ever.  tdt__watch_lock guards `made` and the making; a
 * poll reaches a spare by its bit in `idle`.
 */
static struct spare *spares[MANY];
static uint32_t made;

/*
 * A bit for each spare that nobody uses.  To clear the bit is to claim the spare, and to set it is
 * to free the spare.  So the ticker can claim any of them, and claims only one at a time: polls
 * find the others.
 */
static _Alignas(64) _Atomic uint64_t idle[MANY / WORD_BITS];

/* Relaxed counters: spares that polls took, and polls that found none since the last stocking. */
static _Atomic uint32_t n_taken, n_missed;

/*
 * Under tdt__watch_lock.  The rules that the captures are to know are valid if `newest_known`.
 */
static struct tdt__walk newest;
static bool newest_known;
static bool all_know; /* all captures know them, including those in use */

static bool claim_spare(uint32_t index)
{
	uint64_t bit = UINT64_C(1) << index % WORD_BITS;

	/* Acquire what was done with the spare before.  Pairs with free_spare(). */
	return (atomic_fetch_and_explicit(&idle[index / WORD_BITS], ~bit, memory_order_acquire) &
		bit) != 0;
}

static void free_spare(uint32_t index)
{
	/* Release what was done with the spare.  Pairs with claim_spare(). */
	atomic_fetch_or_explicit(&idle[index / WORD_BITS], UINT64_C(1) << index % WORD_BITS,
				 memory_order_release);
}

struct tdt__capture *tdt__spare_take(void)
{
	for (uint32_t word = 0; word < MANY / WORD_BITS; word++) {
		uint64_t bits;

		while ((bits = atomic_load_explicit(&idle[word], memory_order_relaxed)) != 0) {
			uint32_t index = word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);

			if (!claim_spare(index))
				continue; /* another thread took it meanwhile */
			atomic_fetch_add_explicit(&n_taken, 1, memory_order_relaxed);
			return &spares[index]->capture;
		}
	}
	atomic_fetch_add_explicit(&n_missed, 1, memory_order_relaxed);
	return NULL;
}

uint32_t tdt__spare_taken(void)
{
	return atomic_load_explicit(&n_taken, memory_order_relaxed);
}

static void clear_spare(struct tdt__capture *capture)
{
	tdt__capture_clear(capture);
	capture->walk.learns = TDT__SPARE_LEARNS;
}

void tdt__spare_give(struct tdt__capture *capture)
{
	struct spare *spare = (void *)((char *)capture - offsetof(struct spare, capture));

	clear_spare(capture);
	free_spare(spare->index);
}

void tdt__spare_know(struct tdt__walk *walk)
{
	if (newest_known && tdt__walk_same(&newest, walk)) {
		tdt__walk_fini(walk);
		return;
	}
	if (newest_known)
		tdt__walk_fini(&newest);
	newest = *walk;
	newest_known = true;
	all_know = false;
}

/* Renew each capture that nobody uses.  Those in use are renewed next time. */
static void renew_all(void)
{
	all_know = true;
	for (uint32_t i = 0; i < made; i++) {
		if (!claim_spare(i)) {
			all_know = false;
			continue;
		}
		tdt__walk_share(&spares[i]->capture.walk, &newest);
		clear_spare(&spares[i]->capture);
		free_spare(i);
	}
}

static bool make_spare(void)
{
	struct spare *spare = malloc(sizeof *spare);

	if (spare == NULL)
		return false;
	if (!tdt__capture_init_by(&spare->capture, &newest, TDT__LAST_TREE_MAX, TDT_MAX_FRAMES)) {
		free(spare);
		return false;
	}
	if (!tdt__capture_expect_clones(&spare->capture)) {
		tdt__capture_fini(&spare->capture);
		free(spare);
		return false;
	}
	spare->capture.fixed = true;
	clear_spare(&spare->capture);
	spare->index = made;
	spares[made] = spare;
	free_spare(made++);
	return true;
}

bool tdt__spare_stock(void)
{
	uint32_t lacked = atomic_exchange_explicit(&n_missed, 0, memory_order_relaxed);
	uint32_t want = made < FEW ? FEW : made + (lacked < FEW ? lacked : FEW);

	if (!newest_known)
		return false;
	if (!all_know)
		renew_all();
	while (made < want && made < MANY)
		if (!make_spare())
			return false;
	return true;
}
