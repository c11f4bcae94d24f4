// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Suspecting lost wake-ups, and taking suspicions back: see lost.h. */

#include "task/lost.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/async.h>

#include "base/clock.h"
#include "base/name.h"
#include "capture/chain.h"
#include "capture/counted.h"
#include "facts/lost.h"
#include "host/barrier.h"
#include "host/thread.h"
#include "registry/handle.h"
#include "registry/notes.h"
#include "registry/registry.h"
#include "task/attr.h"
#include "task/request.h"
#include "task/waits.h"
#include "watch/last_tree.h"

atomic_uint tdt__lost_open;

/*
 * The numbers of the suspicions that may still be taken back, by their places in tdt__lost; 0:
 * none.  Whoever changes one from 0 owns the place until it is 0 again, and no number is used
 * twice.
 */
static _Atomic uint64_t open_number[TDT__LOST];
static _Atomic uint64_t numbers; /* how many were given; relaxed: they only have to differ */

static void watch_progress(const struct tdt_handle *task)
{
	tdt__thread.suspect = task;
	tdt__thread.awaited = tdt__thread.wakes = false;
}

/*
 * What the last requester that asked the task in that wait has copied: the name may be gone after
 * the poll.
 */
static const char *awaited_name(const struct tdt__request *requests, uint64_t polls)
{
	while (requests != NULL && requests->wait_polls != polls)
		requests = requests->next;
	return requests != NULL ? requests->wait_name : "";
}

void tdt__suspect_begin(struct tdt__suspect *suspect, const struct tdt_handle *task,
			const struct tdt__request *requests)
{
	const struct tdt_task_record *record = &task->record;

	if (!tdt__thread.all_wakes || record->polls < 2 || record->wait_count == 0 ||
	    record->wait_polls != (uint32_t)(record->polls - 1) ||
	    TDT__PEEK(record->outcome) == TDT__WAIT_UNSURE)
		return;
	suspect->on = true;
	suspect->kind = record->wait_kind;
	suspect->leaves = record->wait_count;
	suspect->object = record->wait_object;
	suspect->owner = record->wait_owner;
	suspect->name = awaited_name(requests, record->polls - 1);
	watch_progress(task);
}

static uint32_t begin_era(void)
{
	return atomic_fetch_add_explicit(&tdt__counted_era, 1, memory_order_relaxed) + 1;
}

static bool polls_suspect(void)
{
	return tdt__thread.suspect != NULL && tdt__thread.poll != NULL &&
	       tdt__thread.poll->task == tdt__thread.suspect;
}

/* An await that has never waited is no progress: the function may be a new one. */
static void note_await(const struct tdt_async *async)
{
	if (async->line == 0 || !polls_suspect())
		return;
	tdt__thread.awaited = true;
	tdt__thread.era = begin_era();
}

/* The mark that programs have compiled into each await of <tdt/async.h>. */
tdt__await_fn *volatile tdt__await_ready = note_await;

void tdt__suspect_wakes(const struct tdt_handle *woken)
{
	if (polls_suspect() && woken != tdt__thread.suspect)
		tdt__thread.wakes = true;
}

/* Whoever has true closes the suspicion. */
static bool close_number(int i, uint64_t number)
{
	if (number == 0 ||
	    !atomic_compare_exchange_strong_explicit(&open_number[i], &number, 0,
						     memory_order_relaxed, memory_order_relaxed))
		return false;
	atomic_fetch_sub_explicit(&tdt__lost_open, 1, memory_order_relaxed);
	return true;
}

static void take_back(int i, uint64_t number)
{
	if (!close_number(i, number))
		return;
	TDT__UNCOUNT(lost);
	/* Unless another suspicion is being written there already. */
	__atomic_compare_exchange_n(&tdt__lost[i].number, &number, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

/* The number of the suspicion at place `i` that may still be taken back; 0: none. */
static uint64_t number_at(int i, uint64_t now)
{
	uint64_t number = atomic_load_explicit(&open_number[i], memory_order_relaxed);

	if (number == 0 || TDT__PEEK(tdt__lost[i].number) != number)
		return 0;
	if (!tdt__lost_is_sure(TDT__PEEK(tdt__lost[i].when), now))
		return number;
	close_number(i, number);
	return 0;
}

/* The place of the oldest suspicion that cannot be taken back, which is now open for `number`. */
static int open_place(uint64_t number)
{
	uint64_t now = tdt__clock(), none = 0;
	int oldest = -1;

	for (int i = 0; i < TDT__LOST; i++)
		if (number_at(i, now) == 0 &&
		    atomic_load_explicit(&open_number[i], memory_order_relaxed) == 0 &&
		    (oldest < 0 ||
		     TDT__PEEK(tdt__lost[i].number) < TDT__PEEK(tdt__lost[oldest].number)))
			oldest = i;
	if (oldest < 0 ||
	    !atomic_compare_exchange_strong_explicit(&open_number[oldest], &none, number,
						     memory_order_acquire, memory_order_relaxed))
		return -1;
	atomic_fetch_add_explicit(&tdt__lost_open, 1, memory_order_relaxed);
	return oldest;
}

/* False: where the task waited there was a leaf that did not say what it waits for. */
static bool fill_lost_tree(struct tdt_registry_lost *lost, const struct tdt_handle *task,
			   uint32_t leaves)
{
	struct tdt_registry_tree *tree = &lost->tree;

	tdt__last_tree_copy(task, tree, lost->entry, TDT_REGISTRY_PANIC_ENTRIES);
	if (tree->polls != task->record.polls - 1)
		*tree = (struct tdt_registry_tree){ .n = 0 };
	return tree->polls == 0 ||
	       (tree->leaves == leaves && tree->elsewhere == 0 && tree->lost == 0);
}

static bool fill_lost(struct tdt_registry_lost *lost, const struct tdt__suspect *suspect,
		      const struct tdt_handle *task)
{
	const struct tdt_task_record *record = &task->record;

	lost->wait_kind = suspect->kind;
	lost->wait_object = suspect->object;
	lost->wait_owner = suspect->owner;
	tdt__name_copy(lost->wait_name, suspect->name);
	lost->id = record->id;
	lost->parent = record->parent;
	lost->polls = record->polls;
	lost->poll = record->poll;
	lost->file = tdt__attr_stored_file(record);
	lost->line = record->line;
	lost->column = record->column;
	memcpy(lost->name, record->name, sizeof lost->name);
	return fill_lost_tree(lost, task, suspect->leaves);
}

static bool was_woken_since(const struct tdt_handle *task)
{
	return tdt__was_woken(task, task->record.polls - 1) ||
	       tdt__was_woken(task, task->record.polls);
}

static void suspect_lost(struct tdt_registry_lost *lost, struct tdt_handle *task, bool waits)
{
	int i;

	lost->number = atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed) + 1;
	i = open_place(lost->number);
	if (i < 0)
		return; /* there are as many suspicions at once as there is room for */
	TDT__COUNT(lost);
	lost->when = tdt__clock();
	tdt__note_write(&tdt__lost[i], lost, sizeof *lost);
	if (waits)
		tdt__request_follow(task, true);
	tdt__barrier_heavy();
	if (was_woken_since(task))
		take_back(i, lost->number);
}

/*
 * Whether the only leaf of the poll that has ended waits for something else than `object`.  A leaf
 * that waits for the same again may have left the waker that whoever brought the event takes, and
 * calls.
 */
static bool waits_elsewhere(const struct tdt_handle *task, uint64_t object)
{
	const struct tdt_task_record *record = &task->record;

	return record->wait_count == 1 && record->wait_polls == (uint32_t)record->polls &&
	       record->wait_object != object;
}

__attribute__((noinline)) bool tdt__suspect_end(const struct tdt__suspect *suspect,
						struct tdt_handle *task, tdt_poll_t result,
						bool moved, uint64_t waited)
{
	struct tdt__thread *here = tdt__thread_here(); /* the child may have changed the thread */
	struct tdt_registry_lost lost = { .waited = waited };
	bool mine = here->suspect == task, awaited = mine && here->awaited;
	int saved = errno;

	here->suspect = NULL;
	if (!mine || was_woken_since(task) ||
	    !(result != TDT_PENDING || awaited || (here->wakes && moved)))
		return awaited;
	lost.own_era = awaited && waits_elsewhere(task, suspect->object) ? here->era
									       : begin_era();
	if (fill_lost(&lost, suspect, task))
		suspect_lost(&lost, task, result == TDT_PENDING);
	errno = saved;
	return awaited;
}

void tdt__lost_forked(void)
{
	for (int i = 0; i < TDT__LOST; i++) {
		uint64_t number = atomic_load_explicit(&open_number[i], memory_order_relaxed);

		/* Of a suspicion that was being noted at the fork, not even the count is sure. */
		if (number != 0 && tdt__lost[i].number == number) {
			TDT__UNCOUNT(lost);
			tdt__lost[i].number = 0;
		}
		atomic_store_explicit(&open_number[i], 0, memory_order_relaxed);
	}
	atomic_store_explicit(&tdt__lost_open, 0, memory_order_relaxed);
}

/* The place of the suspicion of the task that may still be taken back; -1: there is none. */
static int place_of_task(const struct tdt_handle *task)
{
	uint64_t now = tdt__clock();
	int i = TDT__LOST - 1;

	while (i >= 0 &&
	       (number_at(i, now) == 0 || TDT__PEEK(tdt__lost[i].id) != task->record.id))
		i--;
	return i;
}

bool tdt__follow_begin(struct tdt_handle *task)
{
	if (place_of_task(task) < 0) {
		tdt__request_follow(task, false);
		return false;
	}
	watch_progress(task);
	return true;
}

__attribute__((noinline)) void tdt__follow_end(const struct tdt_handle *task, bool stays)
{
	struct tdt__thread *here = tdt__thread_here(); /* as above */
	int i = place_of_task(task);

	here->suspect = NULL;
	if (i < 0)
		return;
	if (!waits_elsewhere(task, TDT__PEEK(tdt__lost[i].wait_object)) ||
	    (!here->awaited && !stays))
		TDT__POKE(tdt__lost[i].own_era, begin_era());
	else if (here->awaited)
		TDT__POKE(tdt__lost[i].own_era, here->era);
}

void tdt__lost_wake(const struct tdt_handle *task)
{
	uint32_t era = tdt__thread.waking_era;
	uint64_t now = tdt__clock();

	tdt__thread.waking_era = 0;
	/* In a poll it is not known yet what the newest clones are for. */
	if (TDT__PEEK(task->record.state) == TDT_TASK_RECORD_POLLING)
		era = 0;
	for (int i = 0; i < TDT__LOST; i++) {
		uint64_t number = number_at(i, now);

		if (number != 0 && TDT__PEEK(tdt__lost[i].id) == task->record.id &&
		    !tdt__is_of_era(era, TDT__PEEK(tdt__lost[i].own_era)))
			take_back(i, number);
	}
}

void tdt__losts_here(struct tdt__losts *losts, uint64_t now)
{
	size_t n = 0;

	*losts = (struct tdt__losts){ .lost = calloc(TDT__LOST, sizeof losts->lost[0]) };
	for (int i = 0; losts->lost != NULL && i < TDT__LOST; i++) {
		uint64_t number = TDT__PEEK(tdt__lost[i].number);

		n += number != 0 && tdt__note_read(&losts->lost[n], &tdt__lost[i],
						   sizeof losts->lost[n], number);
	}
	tdt__losts_judge(losts, n, n, now);
}
