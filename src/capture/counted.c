// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Counted clones: see counted.h. */

#include "capture/counted.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/trace.h>

#include "base/pool.h"
#include "capture/capture.h"
#include "capture/chain.h"
#include "host/thread.h"

/*
 * The parts of `holds`: how many leaves hold the counted clone, how many captures hold it, the era
 * in which it was made, and whether a holder has woken it.  A leaf whose clone was woken did wait.
 */
#define LEAF UINT64_C(1)
#define LEAVES UINT64_C(0xffffffff)
#define CAPTURE (UINT64_C(1) << 32)
#define ERA_SHIFT 48
#define ERA ((uint64_t)TDT__ERAS << ERA_SHIFT)
#define WOKEN (UINT64_C(1) << 63)

struct tdt__counted {
	struct tdt__pool_item item;
	struct tdt_waker waker;       /* the leaf has a pointer to this */
	union {
		/* Owned by the leaves that hold the counted clone; the last one drops it. */
		const struct tdt_waker *real;
		/* In the list of those that a capture was prepared with. */
		struct tdt__counted *next;
	};
	_Atomic uint64_t holds;
};

_Static_assert(sizeof(struct tdt__counted) == 32, "two in a cache line");

static struct tdt__pool clone_pool = { .size = sizeof(struct tdt__counted) };

/* --- Which polls use counted clones ------------------------------------------- */

enum mode { REQUESTS, REQUESTS_AND_WATCH, NOWHERE };

static _Atomic int mode; /* relaxed: a poll may see a change late */
static atomic_bool mode_chosen; /* tdt_leaf_wakers() was called: the environment no longer counts */

bool tdt__counted_wanted(bool requested)
{
	int now = atomic_load_explicit(&mode, memory_order_relaxed);

	return now == REQUESTS_AND_WATCH || (now == REQUESTS && requested);
}

static void choose_mode(bool on)
{
	atomic_store_explicit(&mode, on ? REQUESTS_AND_WATCH : NOWHERE, memory_order_relaxed);
}

void tdt_leaf_wakers(bool on)
{
	atomic_store_explicit(&mode_chosen, true, memory_order_relaxed);
	choose_mode(on);
}

void tdt__counted_by_environment(void)
{
	const char *text = secure_getenv("TDT_LEAF_WAKERS");

	if (text == NULL || atomic_load_explicit(&mode_chosen, memory_order_relaxed))
		return;
	if (strcmp(text, "0") == 0 || strcmp(text, "1") == 0)
		choose_mode(text[0] == '1');
}

/* --- The waker ------------------------------------------------------------------- */

static struct tdt__counted *counted_of(const struct tdt_waker *waker)
{
	return (struct tdt__counted *)(void *)((char *)(uintptr_t)waker -
					       offsetof(struct tdt__counted, waker));
}

const struct tdt_waker *tdt__counted_real(const struct tdt_waker *waker)
{
	return counted_of(waker)->real;
}

/*
 * Give up `hold`.  Returns the holds before that.  Release what this holder did with the counted
 * clone, to the settling poll and to the thread that takes the clone from the pool; the last holder
 * acquires what all others did.  Pairs with itself and with is_held().
 */
static uint64_t give_up_hold(struct tdt__counted *counted, uint64_t hold)
{
	uint64_t before = atomic_fetch_sub_explicit(&counted->holds, hold, memory_order_acq_rel);

	if (((before - hold) & ~(WOKEN | ERA)) == 0)
		tdt__pool_give(&clone_pool, &counted->item);
	return before;
}

/*
 * Give up one leaf's hold.  Returns the runtime's clone if no other leaf holds the counted clone:
 * then the runtime's clone belongs to the caller.  Otherwise returns NULL.
 */
static const struct tdt_waker *give_up_leaf(struct tdt__counted *counted)
{
	/* Read before the hold ends: then another thread may take the clone from the pool. */
	const struct tdt_waker *real = counted->real;

	return (give_up_hold(counted, LEAF) & LEAVES) == LEAF ? real : NULL;
}

static const struct tdt_waker *counted_clone(const struct tdt_waker *waker)
{
	/* Relaxed: the caller holds the counted clone already. */
	atomic_fetch_add_explicit(&counted_of(waker)->holds, LEAF, memory_order_relaxed);
	return waker;
}

static void counted_drop(const struct tdt_waker *waker)
{
	tdt_waker_drop(give_up_leaf(counted_of(waker)));
}

/*
 * Relaxed: the settling poll sees either this mark or the hold of the leaf that wakes, since that
 * leaf gives up its hold later, in the same word.
 */
static void note_woken(struct tdt__counted *counted)
{
	atomic_fetch_or_explicit(&counted->holds, WOKEN, memory_order_relaxed);
}

_Atomic uint32_t tdt__counted_era;

/* The part of `holds` of a clone that is made now. */
static uint64_t now_as_era(void)
{
	return (uint64_t)atomic_load_explicit(&tdt__counted_era, memory_order_relaxed)
		       << ERA_SHIFT & ERA;
}

/* Call one of the two wake functions of the runtime's clone; the thread has the era of ours. */
static void pass_wake_on(const struct tdt_waker *real, uint64_t holds,
			 void (*wake)(const struct tdt_waker *waker))
{
	tdt__thread_here()->waking_era = (uint32_t)((holds & ERA) >> ERA_SHIFT) | TDT__OF_ERA;
	wake(real);
	tdt__thread_here()->waking_era = 0;
}

void tdt__counted_wake_now(const struct tdt_waker *real)
{
	pass_wake_on(real, now_as_era(), real->vtable->wake_by_ref);
}

static void counted_wake_by_ref(const struct tdt_waker *waker)
{
	struct tdt__counted *counted = counted_of(waker);
	const struct tdt_waker *real = counted->real;

	note_woken(counted);
	pass_wake_on(real, atomic_load_explicit(&counted->holds, memory_order_relaxed),
		     real->vtable->wake_by_ref);
}

/*
 * A holder that is the only one passes its wake on as a wake, because a runtime may do less work
 * for a wake than for a wake by reference and a drop.  No other holder can appear meanwhile: only a
 * holder can clone.
 */
static void counted_wake(const struct tdt_waker *waker)
{
	struct tdt__counted *counted = counted_of(waker);
	/*
	 * Acquire what other holders did before they gave up their holds.  Pairs with
	 * give_up_hold().
	 */
	uint64_t holds = atomic_load_explicit(&counted->holds, memory_order_acquire);

	if ((holds & LEAVES) == LEAF) {
		note_woken(counted);
		pass_wake_on(give_up_leaf(counted), holds, tdt_waker_wake);
		return;
	}
	counted_wake_by_ref(waker);
	counted_drop(waker);
}

const struct tdt_waker_vtable tdt__counted_vtable = { counted_clone, counted_wake,
						      counted_wake_by_ref, counted_drop };

/* --- In a captured poll ------------------------------------------------------------ */

void tdt__counted_begin(struct tdt__capture *capture, bool requested)
{
	capture->counts = tdt__counted_wanted(requested);
	if (!capture->counts)
		return;
	/*
	 * The first leaf will write there.  Until now these lines are in the caches of the
	 * requester's processor, or in none.
	 */
	__builtin_prefetch(atomic_load_explicit(&capture->prepared, memory_order_relaxed), 1);
	__builtin_prefetch(capture->clones, 1);
}

/* Whether the leaf that the capture recorded last may get a counted clone. */
static bool takes(const struct tdt__capture *capture)
{
	return capture != NULL && capture->counts && capture->fresh != TDT__NO_FRAME &&
	       atomic_load_explicit(&capture->n_clones, memory_order_relaxed) <
		       capture->clones_room;
}

static struct tdt__poll *next_that_takes(struct tdt__poll *poll)
{
	while (poll != NULL && !takes(poll->capture))
		poll = poll->outer;
	return poll;
}

/*
 * Take one of the counted clones that the capture was prepared with, or else one of the pool.
 * Relaxed: only the poll's thread has the capture.
 */
static struct tdt__counted *take_clone(struct tdt__capture *capture)
{
	struct tdt__counted *counted =
		atomic_load_explicit(&capture->prepared, memory_order_relaxed);

	if (counted == NULL)
		return (void *)tdt__pool_take(&clone_pool);
	atomic_store_explicit(&capture->prepared, counted->next, memory_order_relaxed);
	return counted;
}

static void note(struct tdt__capture *capture, struct tdt__counted *counted)
{
	uint32_t n = atomic_load_explicit(&capture->n_clones, memory_order_relaxed);

	capture->clones[n] = (struct tdt__clone){ counted, capture->fresh, false };
	atomic_store_explicit(&capture->n_clones, n + 1, memory_order_relaxed);
}

/* What a leaf gets in place of `real`, in a clone that nobody else has yet. */
static const struct tdt_waker *hand_out(struct tdt__counted *counted, const struct tdt_waker *real,
					uint64_t holds)
{
	counted->waker.vtable = &tdt__counted_vtable;
	counted->real = real;
	/* Relaxed: no other thread has the counted clone yet. */
	atomic_store_explicit(&counted->holds, holds | now_as_era(), memory_order_relaxed);
	return &counted->waker;
}

const struct tdt_waker *tdt__counted_follow(const struct tdt_waker *real)
{
	struct tdt__counted *counted =
		tdt__counted_wanted(true) ? (void *)tdt__pool_take(&clone_pool) : NULL;

	return counted != NULL ? hand_out(counted, real, LEAF) : real;
}

const struct tdt_waker *tdt__counted_give(struct tdt__poll *poll, const struct tdt_waker *real)
{
	struct tdt__counted *counted;
	uint64_t holds = LEAF;

	poll = next_that_takes(poll);
	if (poll == NULL)
		return real;
	counted = take_clone(poll->capture);
	if (counted == NULL)
		return real;
	for (; poll != NULL; poll = next_that_takes(poll->outer)) {
		note(poll->capture, counted);
		holds += CAPTURE;
	}
	return hand_out(counted, real, holds);
}

/*
 * Acquire what the holders did before they gave up their holds, so that a wake before that is seen.
 * Pairs with give_up_hold().
 */
static bool is_held(const struct tdt__counted *counted)
{
	return (atomic_load_explicit(&counted->holds, memory_order_acquire) & (LEAVES | WOKEN)) !=
	       0;
}

void tdt__counted_settle(struct tdt__capture *capture)
{
	uint32_t n = atomic_load_explicit(&capture->n_clones, memory_order_relaxed), held = 0;

	for (uint32_t i = 0; i < n; i++) {
		capture->clones[i].held = is_held(capture->clones[i].counted);
		held += capture->clones[i].held;
	}
	if (held == n || held == 0)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (!capture->clones[i].held)
			capture->stacks.frames[capture->clones[i].leaf].leaves--;
	capture->stacks.leaves -= n - held;
	tdt__stacks_prune(&capture->stacks);
}

/* --- On the requester's side ------------------------------------------------------------ */

void tdt__counted_prepare(struct tdt__capture *capture, uint32_t n)
{
	struct tdt__counted *first =
		atomic_load_explicit(&capture->prepared, memory_order_relaxed);

	for (struct tdt__counted *counted = first; counted != NULL && n > 0;
	     counted = counted->next)
		n--;
	for (; n > 0; n--) {
		struct tdt__counted *counted = (void *)tdt__pool_take(&clone_pool);

		if (counted == NULL)
			break;
		counted->next = first;
		first = counted;
	}
	/* Relaxed: the poll that takes the capture over acquires it by a lock. */
	atomic_store_explicit(&capture->prepared, first, memory_order_relaxed);
}

void tdt__counted_release(struct tdt__capture *capture, bool all)
{
	/*
	 * Relaxed: the exchanges only decide which thread releases the clones.  What the poll wrote
	 * came with the answer.
	 */
	uint32_t n = atomic_exchange_explicit(&capture->n_clones, 0, memory_order_relaxed);
	struct tdt__counted *counted =
		all ? atomic_exchange_explicit(&capture->prepared, NULL, memory_order_relaxed) :
		      NULL,
		*next;

	for (uint32_t i = 0; i < n; i++)
		give_up_hold(capture->clones[i].counted, CAPTURE);
	for (; counted != NULL; counted = next) {
		next = counted->next;
		tdt__pool_give(&clone_pool, &counted->item);
	}
}

/* --- Filling the pool -------------------------------------------------------------- */

#define CLONES_SLICE 256u /* so many are made before the lock is given up: fork() waits for it */

pthread_mutex_t tdt__counted_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * Make up to CLONES_SLICE counted clones, under the lock.  False: there are enough, or no memory.
 */
static bool make_slice(uint32_t n)
{
	struct tdt__pool_item *item;

	for (uint32_t i = 0; i < CLONES_SLICE; i++) {
		if (atomic_load_explicit(&clone_pool.stock, memory_order_relaxed) >= n)
			return false;
		item = tdt__pool_make(&clone_pool);
		if (item == NULL)
			return false;
		tdt__pool_give(&clone_pool, item);
	}
	return true;
}

uint32_t tdt__counted_made(void)
{
	uint32_t made;

	pthread_mutex_lock(&tdt__counted_lock);
	made = clone_pool.made;
	pthread_mutex_unlock(&tdt__counted_lock);
	return made;
}

/*
 * How many counted clones were missing lately, and are to be made in addition; under the lock.  At
 * most as many as there are: while tasks that come and go find the pool empty, each misses one, but
 * one clone could serve them all in turn.  Relaxed: it is only a number.
 */
static uint32_t missed_lately(void)
{
	uint32_t missed = atomic_exchange_explicit(&clone_pool.missed, 0, memory_order_relaxed);

	return missed < clone_pool.made ? missed : clone_pool.made;
}

void tdt__counted_stock(uint32_t n)
{
	if (atomic_load_explicit(&mode, memory_order_relaxed) == NOWHERE)
		return;
	pthread_mutex_lock(&tdt__counted_lock);
	n += missed_lately();
	while (make_slice(n)) { /* fork() waits for the lock */
		pthread_mutex_unlock(&tdt__counted_lock);
		pthread_mutex_lock(&tdt__counted_lock);
	}
	pthread_mutex_unlock(&tdt__counted_lock);
}
