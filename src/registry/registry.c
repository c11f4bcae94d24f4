// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The slabs of records: how records are given out, taken back and read. */

#include <config.h>

#include "registry/registry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/integrate/hooks.h>

#include "base/clock.h"
#include "base/result.h"
#include "host/slot.h"
#include "host/thread.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/notes.h"

/*
 * The size of a slab, and its alignment: the slab of a record is found from the record's address.
 * malloc adds memory for the alignment, but only two pages of that are touched: two bytes per task,
 * in a slab of this size.  A slab of 2 MiB might become a huge page with its first task.
 */
#define SLAB_SIZE ((size_t)1048576)
#define ROOM ((SLAB_SIZE - 128) / (sizeof(struct tdt_handle) + TDT_HANDLE_ROOM))

struct shard {
	_Alignas(64) struct tdt_handle *free; /* linked by next_of() */
	struct slab *slab;	 /* where new records are taken; NULL: no slab yet */
	/*
	 * Records that threads of other shards gave back, linked by next_of().  Those threads add
	 * records; the owner of the shard takes all of them.
	 */
	_Alignas(64) struct tdt_handle *_Atomic returned;
};

struct slab {
	struct tdt_registry_slab public;
	struct shard *shard; /* constant */
	_Alignas(64) struct tdt_handle task[ROOM];
	/* The runtimes', by the number of the record.  Only what they use is touched. */
	_Alignas(8) unsigned char beside[ROOM][TDT_HANDLE_ROOM];
};

/* That of each slot; and the lock of those who share the first one. */
static struct shard shards[TDT__SLOTS];
static pthread_mutex_t shared_lock = PTHREAD_MUTEX_INITIALIZER;

static _Alignas(64) struct tdt_registry_counters counters[TDT__SLOTS];

struct tdt_registry_panic tdt__panics[TDT__PANICS];
struct tdt_registry_holder tdt__holders[TDT__HOLDERS];
struct tdt_registry_lost tdt__lost[TDT__LOST];

_Alignas(64) struct tdt_registry tdt__registry = {
	.magic = TDT_REGISTRY_MAGIC,
	.version = TDT_REGISTRY_VERSION,
	.size = sizeof(struct tdt_registry),
	.self = (uintptr_t)&tdt__registry,
	.record_size = sizeof(struct tdt_task_record),
	.stride = sizeof(struct tdt_handle),
	.library = PACKAGE_VERSION,
	.counters = (uintptr_t)counters,
	.n_counters = TDT__SLOTS,
	.n_threads = TDT__THREAD_SLOTS,
	.threads = (uintptr_t)tdt__threads,
	.unloads = (uintptr_t)&tdt__unloads_last,
	.panics = (uintptr_t)tdt__panics,
	.n_panics = TDT__PANICS,
	.panic_size = sizeof(struct tdt_registry_panic),
	.holders = (uintptr_t)tdt__holders,
	.n_holders = TDT__HOLDERS,
	.holder_size = sizeof(struct tdt_registry_holder),
	.lost = (uintptr_t)tdt__lost,
	.n_lost = TDT__LOST,
	.lost_size = sizeof(struct tdt_registry_lost),
	.thread_size = sizeof(struct tdt_registry_thread),
	.fiber_size = sizeof(struct tdt_registry_fiber),
	.features = TDT_REGISTRY_WAKES | TDT_REGISTRY_PARENTS,
	.callback_poll = (uintptr_t)tdt__callback_poll,
};

_Static_assert(sizeof(struct tdt_registry) == 256, "the layout is public");
_Static_assert(sizeof(struct tdt_task_record) == 280, "the layout is public");
_Static_assert(sizeof(struct tdt_registry_holder) == 96, "the layout is public");
_Static_assert(sizeof(struct tdt_registry_counters) == 64, "the layout is public");
_Static_assert(sizeof(struct tdt_registry_panic) ==
		       200 + TDT_REGISTRY_PANIC_ENTRIES * sizeof(struct tdt_registry_entry),
	       "the layout is public");
_Static_assert(sizeof(struct tdt_registry_lost) ==
		       288 + TDT_REGISTRY_PANIC_ENTRIES * sizeof(struct tdt_registry_entry),
	       "the layout is public");
_Static_assert(sizeof(PACKAGE_VERSION) <= sizeof(tdt__registry.library), "the version fits");
_Static_assert(offsetof(struct tdt_task_record, id) == 64, "a poll needs one cache line");
_Static_assert(sizeof(struct tdt_handle) == 320, "a task costs five cache lines");
_Static_assert(sizeof(struct slab) <= SLAB_SIZE, "a record's slab is found by its address");
_Static_assert(TDT_TASK_RECORD_NAME_SIZE == TDT_TASK_NAME_MAX + 1, "names fit");

tdt_poll_t tdt__callback_poll(void *state, struct tdt_context *cx)
{
	(void)state;
	(void)cx;
	return TDT_PANICKED;
}

/* --- Giving out and taking back ------------------------------------------ */

static void lock_shared(uint32_t slot)
{
	if (__builtin_expect(slot == 0, 0))
		pthread_mutex_lock(&shared_lock);
}

static void unlock_shared(uint32_t slot)
{
	if (__builtin_expect(slot == 0, 0))
		pthread_mutex_unlock(&shared_lock);
}

static struct slab *slab_of(const struct tdt_handle *task)
{
	return (struct slab *)((uintptr_t)task & ~(uintptr_t)(SLAB_SIZE - 1));
}

void *tdt_handle_room(struct tdt_handle *handle)
{
	struct slab *slab = slab_of(handle);

	return handle != NULL ? slab->beside[handle - slab->task] : NULL;
}

struct tdt_registry_counters *tdt__registry_counters(void)
{
	return &counters[tdt__own_slot()];
}

void tdt__registry_count_polls(uint64_t n)
{
	uint32_t slot = tdt__own_slot();
	uint64_t *polls = &counters[slot].polls;

	/* Release: see handle.c. */
	if (__builtin_expect(slot == 0, 0))
		__atomic_fetch_add(polls, n, __ATOMIC_RELEASE);
	else
		__atomic_store_n(polls, *polls + n, __ATOMIC_RELEASE);
}

/* The next record in a list of free records.  Others may still read the word, and discard it. */
static struct tdt_handle *next_of(const struct tdt_handle *task)
{
	return (struct tdt_handle *)(uintptr_t)task->record.child_state;
}

static void set_next(struct tdt_handle *task, const struct tdt_handle *next)
{
	TDT__POKE(task->record.child_state, (uintptr_t)next);
}

/* Make a slab for the shard, and add it to the list of all slabs, where it stays. */
static struct slab *slab_new(struct shard *shard)
{
	struct slab *slab = aligned_alloc(SLAB_SIZE, SLAB_SIZE);
	uint64_t first = TDT__PEEK(tdt__registry.slabs);

	if (slab == NULL)
		return NULL;
	memset(slab, 0, offsetof(struct slab, task));
	slab->shard = shard;
	slab->public.records = (uintptr_t)&slab->task[0].record;
	slab->public.room = ROOM;
	do
		slab->public.next = first;
	/* Release the slab to readers of the list.  Pairs with tdt__registry_next(). */
	while (!__atomic_compare_exchange_n(&tdt__registry.slabs, &first, (uintptr_t)slab, true,
					    __ATOMIC_RELEASE, __ATOMIC_RELAXED));
	return slab;
}

/* Returns a record of the shard that was never used. */
static struct tdt_handle *first_use(struct shard *shard)
{
	struct tdt_handle *task;
	uint32_t used;

	if (shard->slab == NULL || shard->slab->public.used == ROOM)
		shard->slab = slab_new(shard);
	if (shard->slab == NULL)
		return NULL;
	used = shard->slab->public.used;
	task = &shard->slab->task[used];
	memset(task, 0, sizeof *task);
	/* Release the record, which is still free, to readers.  Pairs with tdt__registry_next(). */
	__atomic_store_n(&shard->slab->public.used, used + 1, __ATOMIC_RELEASE);
	return task;
}

/*
 * Few tasks are woken, wait, or have a name, and to look at a word costs less than to store one.
 */
static inline __attribute__((always_inline)) void clear_used(struct tdt_handle *task, size_t from,
							     size_t to)
{
	tdt__record_word *word = tdt__record_words(&task->record), used = 0;

#pragma GCC unroll 16 /* the loop takes twice the instructions of the loads */
	for (size_t i = from; i < to; i++)
		used |= word[i];
	for (size_t i = from; used != 0 && i < to; i++)
		TDT__POKE(word[i], 0);
}

#define CLEAR_USED(task, from, to)                                                                 \
	clear_used(task, TDT__RECORD_WORD(from), TDT__RECORD_WORD(to))

/*
 * Reset the record to what it was before its first use, except `seq`, which only increases, and
 * what record_new() sets.  `state` is TDT_TASK_RECORD_FREE and `refs` is 0 already.  They are not
 * written here, because readers look at `state`, and tdt__handle_ref_if_same() looks at `refs`.
 */
static void clear(struct tdt_handle *task)
{
	struct tdt_task_record *record = &task->record;

	record->waker = 0;
	TDT__POKE(record->polls, 0);
	CLEAR_USED(task, stack_top, id);
	CLEAR_USED(task, woken, wait_kind);
	TDT__POKE(tdt__record_words(record)[TDT__RECORD_WORD(wait_kind)], 0);
	if (record->name[0] != '\0')
		CLEAR_USED(task, name, parent);
	CLEAR_USED(task, tree, context); /* which tdt__handle_over() has dropped */
	CLEAR_USED(task, leaf, joiners);
	record->joiners = 0;
	atomic_init(&task->elsewhere, 0);
	atomic_init(&task->outcome, TDT__OUTCOME_NOBODY);
	task->requests = NULL;
}

/*
 * Acquire what other threads did to the records before they gave them back.  Pairs with
 * give_to_other().
 */
static struct tdt_handle *take_returned(struct shard *shard)
{
	return atomic_exchange_explicit(&shard->returned, NULL, memory_order_acquire);
}

/* A record that is given to a task: make its `seq` odd, and count the task. */
static void begin_task(struct tdt_registry_counters *own, struct tdt_handle *task)
{
	TDT__POKE(task->record.seq, task->record.seq + 1);
	/* Release: a reader that counts the task sees the odd `seq`.  Pairs with counters.c. */
	__atomic_store_n(&own->spawned, own->spawned + 1, __ATOMIC_RELEASE);
}

static struct tdt_handle *take_free(struct shard *shard)
{
	struct tdt_handle *task = shard->free;

	if (task == NULL)
		task = take_returned(shard);
	if (task == NULL)
		return first_use(shard);
	shard->free = next_of(task);
	return task;
}

struct tdt_handle *tdt__registry_take(struct tdt_handle *kept)
{
	uint32_t slot = tdt__own_slot();
	struct tdt_handle *task;

	lock_shared(slot);
	task = kept != NULL ? kept : take_free(&shards[slot]);
	if (task != NULL)
		begin_task(&counters[slot], task);
	unlock_shared(slot);
	if (task == NULL)
		return tdt__nothing(-ENOMEM);
	/*
	 * A reader that sees anything written from here on cannot then find the old `seq`.  Pairs
	 * with tdt__registry_read().
	 */
	atomic_thread_fence(memory_order_release);
	clear(task);
	return task;
}

void tdt__registry_uncount(void)
{
	uint32_t slot = tdt__own_slot();

	lock_shared(slot);
	TDT__POKE(counters[slot].spawned, counters[slot].spawned - 1);
	unlock_shared(slot);
}

/* The next task gets this record, while it is still in the caches. */
static void give_to_own(uint32_t slot, struct tdt_handle *task)
{
	lock_shared(slot);
	set_next(task, shards[slot].free);
	/* Release: a child of fork() finds the list whole. */
	__atomic_store_n(&shards[slot].free, task, __ATOMIC_RELEASE);
	unlock_shared(slot);
}

/*
 * This takes no lock.  Where one thread spawns tasks and others end them, a lock would make the
 * threads wait for each other at every task.
 */
static void give_to_other(struct shard *shard, struct tdt_handle *task)
{
	struct tdt_handle *first = atomic_load_explicit(&shard->returned, memory_order_relaxed);

	do
		set_next(task, first);
	/* Release all that was done to the record.  Pairs with take_returned(). */
	while (!atomic_compare_exchange_weak_explicit(&shard->returned, &first, task,
						      memory_order_release, memory_order_relaxed));
}

void tdt__registry_give(struct tdt_handle *task)
{
	struct shard *shard = slab_of(task)->shard;
	uint32_t slot = tdt__own_slot();

	if (shard == &shards[slot])
		give_to_own(slot, task);
	else
		give_to_other(shard, task);
}

/* --- Reading --------------------------------------------------------------- */

static struct tdt_registry_slab *next_slab(const struct tdt_registry_slab *slab)
{
	return (void *)(uintptr_t)slab->next;
}

struct tdt_handle *tdt__registry_next(struct tdt__cursor *cursor)
{
	struct tdt_registry_slab *slab;

	if (!cursor->begun) {
		cursor->begun = true;
		/* Acquire: pairs with slab_new(). */
		cursor->newest =
		    (void *)(uintptr_t)__atomic_load_n(&tdt__registry.slabs, __ATOMIC_ACQUIRE);
		for (slab = cursor->newest; slab != NULL; slab = next_slab(slab))
			cursor->left++;
	}
	/* Acquire: pairs with first_use(). */
	while (cursor->slab == NULL ||
	       cursor->index == __atomic_load_n(&cursor->slab->used, __ATOMIC_ACQUIRE)) {
		if (cursor->left == 0)
			return NULL;
		cursor->slab = cursor->newest;
		cursor->index = 0;
		for (uint32_t i = --cursor->left; i > 0; i--)
			cursor->slab = next_slab(cursor->slab);
	}
	return &((struct slab *)cursor->slab)->task[cursor->index++];
}

/*
 * Whether the copy says completely what a leaf waited for in the task's last poll.  `first` is
 * `wait_polls` as it was before the copy was made.  If it is the number of the last poll of the
 * copy, the `wait_*` fields that were written before it are of that poll too.  If the task is still
 * idle and has not begun another poll, the last poll had ended when the copy was made.
 */
static bool waits_are_whole(const struct tdt_handle *task, const struct tdt_task_record *copy,
			    uint32_t first)
{
	/* Acquire: `state` is loaded before `polls`.  Pairs with the releases in wrapper.c. */
	uint32_t state = __atomic_load_n(&task->record.state, __ATOMIC_ACQUIRE);

	return first == (uint32_t)copy->polls && state == TDT_TASK_RECORD_IDLE &&
	       TDT__PEEK(task->record.polls) == copy->polls;
}

/* Never inlined into a loop, out of which the compiler would take the address of each word. */
static __attribute__((noinline)) void copy_words(const struct tdt_task_record *record,
						 struct tdt_task_record *copy)
{
#pragma GCC unroll 64
	for (size_t i = TDT__RECORD_FIRST; i <= TDT__RECORD_LAST; i++)
		tdt__record_words(copy)[i] =
		    __atomic_load_n(&tdt__record_words(record)[i], __ATOMIC_ACQUIRE);
}

bool tdt__registry_read(const struct tdt_handle *task, struct tdt_task_record *copy)
{
	uint32_t waits;

	do {
		/*
		 * Acquire the fields that were written before it.  Pairs with tdt_leaf_waits_on().
		 */
		waits = __atomic_load_n(&task->record.wait_polls, __ATOMIC_ACQUIRE);
		/*
		 * Acquire: `seq` and `state` are loaded first, and with them come the fields that
		 * were filled in, or written by the previous poll (pairs with
		 * tdt__registry_publish() and wrapper.c).  Then each word is loaded before the next
		 * one, and all of them before `seq` is loaded again (pairs with the fence in
		 * tdt__registry_take()).
		 */
		copy_words(&task->record, copy);
		if (copy->seq % 2 != 0)
			return false;
		if (!waits_are_whole(task, copy, waits))
			copy->wait_count = 0;
	} while (TDT__PEEK(task->record.seq) != copy->seq);
	return copy->state != TDT_TASK_RECORD_FREE;
}

/* --- The process ------------------------------------------------------------- */

void tdt__registry_begin(void)
{
	TDT__POKE(tdt__registry.start_real, tdt__clock_of(CLOCK_REALTIME));
	TDT__POKE(tdt__registry.start, tdt__clock());
	TDT__POKE(tdt__registry.pid, (uint32_t)getpid());
}

void tdt__registry_forked(void)
{
	TDT__POKE(tdt__registry.pid, (uint32_t)getpid());
	tdt__notes_forget_half(tdt__panics, TDT__PANICS, sizeof tdt__panics[0]);
	tdt__notes_forget_half(tdt__holders, TDT__HOLDERS, sizeof tdt__holders[0]);
	tdt__notes_forget_half(tdt__lost, TDT__LOST, sizeof tdt__lost[0]);
}

void tdt__registry_lock(void)
{
	pthread_mutex_lock(&shared_lock);
}

void tdt__registry_unlock(void)
{
	pthread_mutex_unlock(&shared_lock);
}
