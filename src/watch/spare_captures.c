// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The pool of spare captures, and keeping them up to date. */

#include <config.h>

#include "watch/spare_captures.h"

#include <tdt/trace.h>

#include "base/pool.h"
#include "capture/capture.h"
#include "watch/last_tree.h"

#define FEW 64    /* so many are made first: polls that are in progress at once */
#define MANY 1024 /* so many are made at most: nested polls need one each */

struct spare {
	struct tdt__pool_item item;
	struct tdt__capture capture;
};

static struct tdt__pool spare_pool = { .size = sizeof(struct spare) };

/*
 * Under tdt__watch_lock.  The rules that the captures are to know are valid if `newest_known`.
 */
static struct tdt__walk newest;
static bool newest_known;
static bool all_know; /* all captures know them, including those in use */

/* --- The poller's side ------------------------------------------------------ */

struct tdt__capture *tdt__spare_take(void)
{
	struct spare *spare = (void *)tdt__pool_take(&spare_pool);

	return spare != NULL ? &spare->capture : NULL;
}

uint32_t tdt__spare_taken(void)
{
	return atomic_load_explicit(&spare_pool.taken, memory_order_relaxed);
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
	tdt__pool_give(&spare_pool, &spare->item);
}

/* --- The ticker's side -------------------------------------------------------- */

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

/* Renew all captures in the pool.  Those in use return as they are, and are renewed next time. */
static void renew_all(void)
{
	struct tdt__pool_item *item = tdt__pool_take_all(&spare_pool), *next;
	uint32_t renewed = 0;

	for (; item != NULL; item = next, renewed++) {
		struct spare *spare = (void *)item;

		next = tdt__pool_next(&spare_pool, item);
		if (!tdt__walk_same(&spare->capture.walk, &newest))
			tdt__walk_share(&spare->capture.walk, &newest);
		clear_spare(&spare->capture);
		tdt__pool_give(&spare_pool, item);
	}
	all_know = renewed == spare_pool.made;
}

static bool make_spare(void)
{
	struct spare *spare;

	spare = (void *)tdt__pool_make(&spare_pool);
	if (spare == NULL)
		return false;
	if (!tdt__capture_init_by(&spare->capture, &newest, TDT__LAST_TREE_MAX, TDT_MAX_FRAMES)) {
		tdt__pool_unmake(&spare_pool);
		return false;
	}
	if (!tdt__capture_expect_clones(&spare->capture)) {
		tdt__capture_fini(&spare->capture);
		tdt__pool_unmake(&spare_pool);
		return false;
	}
	spare->capture.fixed = true;
	clear_spare(&spare->capture);
	tdt__pool_give(&spare_pool, &spare->item);
	return true;
}

bool tdt__spare_stock(void)
{
	uint32_t missed = atomic_exchange_explicit(&spare_pool.missed, 0, memory_order_relaxed);
	uint32_t want =
	    spare_pool.made < FEW ? FEW : spare_pool.made + (missed < FEW ? missed : FEW);

	if (!newest_known)
		return false;
	if (!all_know)
		renew_all();
	while (spare_pool.made < want && spare_pool.made < MANY)
		if (!make_spare())
			return false;
	return true;
}
