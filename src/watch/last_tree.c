// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writing trees while other threads read them.  All that readers read is atomic, word by word.  To
 * know that the words belong together, readers read some of them again afterwards
 * (<tdt/layout/registry.h>):
 *
 *   poller                              reader
 *     published = p                       tree = record.tree
 *     fence (release)                     p = published
 *     write tree p + 1                    read tree p
 *     published = p + 1                   fence (acquire)
 *     record.tree = this                  is published still p?  is record.tree still tree?
 *
 * Tree p + 2 lies where tree p was.  A reader that has read a word of tree p + 2 then finds that
 * `published` is at least p + 1.  If tree p + 2 was written for another task, the reader finds that
 * record.tree has changed.
 */

#include "watch/last_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/pool.h"
#include "capture/capture.h"
#include "facts/registry_tree.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "tree/named.h"
#include "watch/epoch.h"

_Static_assert(sizeof(struct tdt_registry_watched) == 16, "the layout is public");
_Static_assert(sizeof(struct tdt_registry_entry) == 16, "the layout is public");
_Static_assert(sizeof(struct tdt_registry_tree) == 56, "the layout is public");
_Static_assert(offsetof(struct tdt_registry_watched, own_index) ==
		       offsetof(struct tdt__pool_item, index),
	       "it begins with what the pool has of it");
_Static_assert(TDT_REGISTRY_TOP == TDT__PARENT_TOP, "parents mean the same as in a capture");

#define TREE_SIZE(room)                                                                            \
	(sizeof(struct tdt_registry_tree) + (room) * sizeof(struct tdt_registry_entry))
#define CLASS(room) { .size = sizeof(struct tdt_registry_watched) + 2 * TREE_SIZE(room) }

/* Most trees are small.  Small sizes lie close together, since each task has room for two trees. */
static const uint32_t rooms[] = { 8,  12,  16,	20,  24,
				  28, 32,  40,	48,  64,
				  96, 128, 192, 256, TDT__LAST_TREE_MAX };

#define CLASSES (sizeof rooms / sizeof rooms[0])

static struct tdt__pool pools[CLASSES] = { CLASS(8),   CLASS(12),  CLASS(16),
					   CLASS(20),  CLASS(24),  CLASS(28),
					   CLASS(32),  CLASS(40),  CLASS(48),
					   CLASS(64),  CLASS(96),  CLASS(128),
					   CLASS(192), CLASS(256), CLASS(TDT__LAST_TREE_MAX) };

/* The smallest class with room for `n` frames; if there is none, the largest class. */
static size_t class_of(uint32_t n)
{
	size_t class = 0;

	while (class < CLASSES - 1 && rooms[class] < n)
		class++;
	return class;
}

static struct tdt_registry_tree *tree_of(struct tdt_registry_watched *watched, uint32_t number)
{
	return (void *)((char *)(watched + 1) + (number % 2) * TREE_SIZE(watched->room));
}

static struct tdt_registry_entry *entries_of(const struct tdt_registry_tree *tree)
{
	return (void *)(uintptr_t)(tree + 1);
}

/* The task's trees, for the thread that writes them. */
static struct tdt_registry_watched *watched_of(const struct tdt_handle *task)
{
	return (void *)(uintptr_t)TDT__PEEK(task->record.tree);
}

static void give(struct tdt_registry_watched *watched)
{
	tdt__pool_give(&pools[class_of(watched->room)],
		       (struct tdt__pool_item *)(void *)watched);
}

/* --- Promises -------------------------------------------------------------- */

#define NO_CLASS CLASSES
#define USUAL_FRAMES 32 /* assumed until the first of these trees was recorded */

/*
 * All of these are relaxed.  If a number lags behind for a moment, then at worst a task has no
 * first tree in that moment; and each pool holds a few more rooms than were promised.
 */
static _Atomic uint32_t promised[CLASSES]; /* promises that were not redeemed yet */
static _Atomic size_t usual = NO_CLASS;	   /* the class that first trees need */
static _Atomic size_t largest = NO_CLASS;  /* the largest class that one needed in this tick */

_Static_assert(TDT__PROMISED + CLASSES - 1 < TDT__EPOCH_LABELS, "a promise says which size");

static size_t promised_class(uint16_t own_epoch)
{
	return own_epoch - TDT__PROMISED;
}

void tdt__last_tree_redeem(uint16_t own_epoch)
{
	if (tdt__is_promised(own_epoch))
		atomic_fetch_sub_explicit(&promised[promised_class(own_epoch)], 1,
					  memory_order_relaxed);
}

/* In a burst, the first trees show what size the tasks that are spawned after them need. */
static void learn_usual(size_t class)
{
	size_t now = atomic_load_explicit(&usual, memory_order_relaxed);

	if (now == NO_CLASS || now < class)
		atomic_store_explicit(&usual, class, memory_order_relaxed);
	now = atomic_load_explicit(&largest, memory_order_relaxed);
	if (now == NO_CLASS || now < class)
		atomic_store_explicit(&largest, class, memory_order_relaxed);
}

static size_t usual_class(void)
{
	size_t class = atomic_load_explicit(&usual, memory_order_relaxed);

	return class != NO_CLASS ? class : class_of(USUAL_FRAMES);
}

/* After a tick, other tasks with other sizes may be spawned. */
static void forget_usual(void)
{
	size_t class = atomic_exchange_explicit(&largest, NO_CLASS, memory_order_relaxed);

	if (class != NO_CLASS)
		atomic_store_explicit(&usual, class, memory_order_relaxed);
}

/* Take a room from the pool, unless it is promised to another task.  NULL: there is none. */
static struct tdt_registry_watched *take_from(size_t class, bool is_promised)
{
	struct tdt__pool *pool = &pools[class];

	if (!is_promised && atomic_load_explicit(&pool->stock, memory_order_relaxed) <=
				    atomic_load_explicit(&promised[class], memory_order_relaxed))
		return NULL;
	return (void *)tdt__pool_take(pool);
}

/* A task found no room for all its frames.  At the next tick, a room of this size is to be made. */
static void miss(size_t class)
{
	atomic_fetch_add_explicit(&pools[class].missed, 1, memory_order_relaxed);
}

/*
 * Take a room for the `n` frames of a task's first tree.  If there is none of that size, a larger
 * one is taken; if there is no larger one either, a smaller one, because a truncated tree says more
 * than none.  Only the size that the task needs counts as missed, not each size that was tried.
 * When each of them counted, 10,000 tasks at once caused 430 MB to be made.
 */
static struct tdt_registry_watched *take_first_room(uint32_t n, uint16_t own_epoch)
{
	size_t class = class_of(n),
	       own = tdt__is_promised(own_epoch) ? promised_class(own_epoch) : CLASSES;
	struct tdt_registry_watched *watched = NULL;

	learn_usual(class);
	for (size_t c = class; watched == NULL && c < CLASSES; c++)
		watched = take_from(c, c == own);
	if (watched != NULL)
		return watched;
	miss(class);
	for (size_t c = class; watched == NULL && c-- > 0;)
		watched = take_from(c, c == own);
	return watched;
}

/* Take a room for the `n` frames of a task that has outgrown its room. */
static struct tdt_registry_watched *take_larger(uint32_t n)
{
	size_t class = class_of(n);
	struct tdt_registry_watched *watched = take_from(class, false);

	if (watched == NULL)
		miss(class);
	return watched;
}

/* --- Writing --------------------------------------------------------------- */

void tdt__tree_write(struct tdt_registry_tree *tree, struct tdt_registry_entry *entry,
		     uint32_t room, const struct tdt__capture *capture)
{
	uint32_t leaves = 0, n = capture->stacks.n < room ? capture->stacks.n : room;

	for (uint32_t i = 0; i < n; i++, entry++) {
		const struct tdt__recorded *from = &capture->stacks.frames[i];
		uint32_t parent = from->parent;

		if (tdt__is_frame(parent) && parent >= n)
			parent = TDT__PARENT_CUT(TDT_CUT_LIMIT);
		TDT__POKE(entry->pc, tdt__is_named(from->frame.pc) ? 0 : from->frame.pc);
		TDT__POKE(entry->parent, parent);
		TDT__POKE(entry->leaves,
			  from->leaves | (from->frame.guessed ? TDT_REGISTRY_GUESSED : 0));
		leaves += from->leaves;
	}
	TDT__POKE(tree->polls, capture->facts.polls);
	TDT__POKE(tree->when, capture->began);
	TDT__POKE(tree->gap, capture->facts.state_ns);
	TDT__POKE(tree->tick, atomic_load_explicit(&tdt__epoch.tick, memory_order_relaxed));
	TDT__POKE(tree->unloads, capture->stacks.unloads);
	TDT__POKE(tree->n, n);
	TDT__POKE(tree->leaves, leaves);
	TDT__POKE(tree->elsewhere, capture->stacks.elsewhere);
	TDT__POKE(tree->lost, capture->stacks.lost + (capture->stacks.leaves - leaves));
}

void tdt__last_tree_record(struct tdt_handle *task, const struct tdt__capture *capture)
{
	struct tdt_registry_watched *old = watched_of(task), *watched = old;
	struct tdt_registry_tree *tree;
	uint32_t n = capture->stacks.n < TDT__LAST_TREE_MAX ? capture->stacks.n
							    : TDT__LAST_TREE_MAX,
		 number;

	if (old == NULL)
		watched = take_first_room(n, capture->promised);
	else if (old->room < n)
		watched = take_larger(n);
	if (watched == NULL)
		return;
	if (n > watched->room)
		n = watched->room;
	number = TDT__PEEK(watched->published) + 1;
	/*
	 * A reader that sees a word that is written from here on also sees the current `published`,
	 * or a later one.  Pairs with the fence in copy_tree().
	 */
	atomic_thread_fence(memory_order_release);
	tree = tree_of(watched, number);
	tdt__tree_write(tree, entries_of(tree), n, capture);
	/* Release the tree.  Pairs with copy_tree(). */
	__atomic_store_n(&watched->published, number, __ATOMIC_RELEASE);
	if (watched == old)
		return;
	/* Release the room with its first tree.  Pairs with tdt__last_tree_read(). */
	__atomic_store_n(&task->record.tree, (uintptr_t)watched, __ATOMIC_RELEASE);
	if (old != NULL)
		give(old);
}

void tdt__last_tree_drop(struct tdt_handle *task)
{
	struct tdt_registry_watched *watched = watched_of(task);

	tdt__last_tree_redeem(task->record.own_epoch);
	TDT__POKE(task->record.own_epoch, 0);
	if (watched == NULL)
		return;
	TDT__POKE(task->record.tree, 0);
	give(watched);
}

/* Only the thread of the task's poll writes the trees, so it reads them as they are. */
void tdt__last_tree_copy(const struct tdt_handle *task, struct tdt_registry_tree *to,
			 struct tdt_registry_entry *entry, uint32_t room)
{
	struct tdt_registry_watched *watched = watched_of(task);
	const struct tdt_registry_tree *tree;

	if (watched == NULL)
		return;
	tree = tree_of(watched, watched->published);
	*to = *tree;
	if (to->n > room)
		to->n = room;
	memcpy(entry, entries_of(tree), to->n * sizeof *entry);
	for (uint32_t i = 0; i < to->n; i++)
		if (tdt__is_frame(entry[i].parent) && entry[i].parent >= to->n)
			entry[i].parent = TDT__PARENT_CUT(TDT_CUT_LIMIT);
}

/* --- Reading --------------------------------------------------------------- */

/*
 * Copy the last tree of `watched` to `to->stacks`, which have room for it.  False: the tree was
 * overwritten meanwhile.
 */
static bool copy_tree(struct tdt_registry_watched *watched, struct tdt__last_tree *to)
{
	struct tdt__stacks *stacks = to->stacks;
	/* Acquire the tree.  Pairs with tdt__last_tree_record(). */
	uint32_t published = __atomic_load_n(&watched->published, __ATOMIC_ACQUIRE);
	const struct tdt_registry_tree *tree = tree_of(watched, published);

	to->published = published;
	to->polls = TDT__PEEK(tree->polls);
	to->when = TDT__PEEK(tree->when);
	tdt__registry_tree_read(stacks, tree, entries_of(tree));
	/*
	 * Read the whole tree before `published` is read again.  Pairs with the fence in
	 * tdt__last_tree_record().
	 */
	atomic_thread_fence(memory_order_acquire);
	return TDT__PEEK(watched->published) == published;
}

/*
 * Give the stacks the modules that are loaded now: the stacks may have been recorded before the
 * requester's table of modules was made.
 */
static bool meet_modules(struct tdt__stacks *stacks)
{
	struct tdt__walk walk;

	if (!tdt__walk_init(&walk))
		return false;
	for (uint32_t i = 0; i < stacks->n; i++)
		tdt__walk_meet(&walk, stacks->frames[i].frame.pc - 1);
	stacks->modules = tdt__modules_ref(tdt__walk_modules(&walk));
	tdt__walk_fini(&walk);
	return true;
}

struct tdt__stacks *tdt__tree_stacks(const struct tdt_registry_tree *tree,
				     const struct tdt_registry_entry *entry)
{
	struct tdt__stacks *stacks = tdt__stacks_new(tree->n != 0 ? tree->n : 1);

	if (stacks == NULL)
		return NULL;
	tdt__registry_tree_read(stacks, tree, entry);
	if (meet_modules(stacks))
		return stacks;
	tdt__stacks_free(stacks);
	return NULL;
}

bool tdt__last_tree_shows(const struct tdt_handle *task)
{
	/* Acquire: pairs with wrapper.c, and with tdt__last_tree_record(). */
	uint32_t state = __atomic_load_n(&task->record.state, __ATOMIC_ACQUIRE);
	uint64_t polls = TDT__PEEK(task->record.polls);
	uint64_t address = __atomic_load_n(&task->record.tree, __ATOMIC_ACQUIRE);
	struct tdt_registry_watched *watched = (void *)(uintptr_t)address;
	uint32_t published;
	uint64_t of;

	if (state != TDT_TASK_RECORD_IDLE || watched == NULL)
		return false;
	published = __atomic_load_n(&watched->published, __ATOMIC_ACQUIRE);
	of = TDT__PEEK(tree_of(watched, published)->polls);
	/* Read it before the others are read again: the room may be another task's by now. */
	atomic_thread_fence(memory_order_acquire);
	return of == polls && !tdt__was_woken(task, polls) &&
	       TDT__PEEK(watched->published) == published &&
	       TDT__PEEK(task->record.tree) == address && TDT__PEEK(task->record.polls) == polls;
}

int tdt__last_tree_read(const struct tdt_handle *task, struct tdt__last_tree *tree)
{
	uint64_t address;

	for (;;) {
		struct tdt_registry_watched *watched;

		/* Acquire the room's first tree.  Pairs with tdt__last_tree_record(). */
		address = __atomic_load_n(&task->record.tree, __ATOMIC_ACQUIRE);
		watched = (void *)(uintptr_t)address;
		if (watched == NULL)
			return -ENODATA;
		tree->stacks = tdt__stacks_new(watched->room);
		if (tree->stacks == NULL)
			return -ENOMEM;
		while (!copy_tree(watched, tree))
			;
		/*
		 * Meanwhile the room may have been another task's, and may be this task's again,
		 * with another tree.  Acquire: pairs with tdt__last_tree_record().
		 */
		if (__atomic_load_n(&task->record.tree, __ATOMIC_ACQUIRE) == address &&
		    TDT__PEEK(watched->published) == tree->published)
			break;
		tdt__stacks_free(tree->stacks);
	}
	if (meet_modules(tree->stacks))
		return 0;
	tdt__stacks_free(tree->stacks);
	return -ENOMEM;
}

/* --- Filling the pools ------------------------------------------------------- */

#define BASE ((size_t)16384) /* bytes in each pool, even if no room was taken lately */
#define STEP 65536u          /* so many are made at a time at most, besides those expected */

static bool make_watched(struct tdt__pool *pool, uint32_t room)
{
	struct tdt_registry_watched *watched = (void *)tdt__pool_make(pool);

	if (watched == NULL)
		return false;
	watched->room = room;
	watched->published = 0;
	give(watched);
	return true;
}

/* Under tdt__watch_lock. */
static uint32_t due[CLASSES]; /* how many are still to be made */
static uint32_t expected;     /* how many of the usual size will be needed besides */

#define AHEAD 64 /* so many are made if a promise finds too few: not every spawn takes the lock */

void tdt__last_tree_promise(struct tdt_handle *task)
{
	size_t class;
	uint32_t want;
	bool made = true;

	if (tdt__epoch_now() == 0)
		return;
	class = usual_class();
	want = atomic_fetch_add_explicit(&promised[class], 1, memory_order_relaxed) + 1;
	if (atomic_load_explicit(&pools[class].stock, memory_order_relaxed) < want) {
		pthread_mutex_lock(&tdt__watch_lock);
		for (int i = 0; made && i < AHEAD; i++)
			made = make_watched(&pools[class], rooms[class]);
		pthread_mutex_unlock(&tdt__watch_lock);
	}
	TDT__POKE(task->record.own_epoch, (uint16_t)(TDT__PROMISED + class));
}

uint32_t tdt__last_tree_promises(void)
{
	uint32_t n = 0;

	for (size_t class = 0; class < CLASSES; class++)
		n += atomic_load_explicit(&promised[class], memory_order_relaxed);
	return n;
}

uint32_t tdt__last_tree_made(void)
{
	uint32_t n = 0;

	for (size_t class = 0; class < CLASSES; class++)
		n += pools[class].made;
	return n;
}

uint32_t tdt__last_tree_without(void)
{
	struct tdt__cursor cursor = { .slab = NULL };
	const struct tdt_handle *task;
	uint32_t n = 0;

	while ((task = tdt__registry_next(&cursor)) != NULL) {
		uint32_t state = TDT__PEEK(task->record.state);

		n += state != TDT_TASK_RECORD_FREE && state != TDT_TASK_RECORD_ENDED &&
		     TDT__PEEK(task->record.tree) == 0;
	}
	return n;
}

void tdt__last_tree_expect(uint32_t n)
{
	expected = n;
}

/*
 * How many rooms the pool lacks.  It should hold as many as were missed lately, and an eighth of
 * those that were taken lately: when all tasks have their trees, the rest of the pool is not
 * needed.  Tasks that come and go take the same rooms again and again, so at most as many count as
 * taken as were made.  `more` rooms are expected to be taken besides.
 */
static uint32_t lacking(struct tdt__pool *pool, uint32_t more)
{
	uint32_t missed = atomic_exchange_explicit(&pool->missed, 0, memory_order_relaxed);
	uint32_t taken = atomic_exchange_explicit(&pool->taken, 0, memory_order_relaxed);
	uint32_t in_use = taken < pool->made ? taken : pool->made;
	uint32_t want = (uint32_t)(BASE / pool->size) + 2 + missed + in_use / 8 +
			atomic_load_explicit(&promised[pool - pools], memory_order_relaxed) + more;
	uint32_t have = atomic_load_explicit(&pool->stock, memory_order_relaxed);

	if (have >= want)
		return 0;
	return want - have < STEP + more ? want - have : STEP + more;
}

void tdt__last_tree_count(void)
{
	size_t usual_now = usual_class();

	for (size_t class = 0; class < CLASSES; class++)
		due[class] = lacking(&pools[class], class == usual_now ? expected : 0);
	expected = 0;
	forget_usual();
}

int tdt__last_tree_stock(uint32_t n)
{
	int error = 0;

	for (size_t class = 0; class < CLASSES; class++) {
		for (; due[class] > 0 && n > 0; n--) {
			due[class]--;
			if (make_watched(&pools[class], rooms[class]))
				continue;
			due[class] = 0;
			error = -ENOMEM;
		}
		if (due[class] > 0)
			return 1;
	}
	return error;
}
