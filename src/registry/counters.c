// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Counters for metrics: <tdt/counters.h>.
 *
 * No poll counts for them.  Polls are counted in the records, and in the counters of the registry
 * when a record is given back.  So the order of the reads matters.  First the counters are read,
 * with acquire, and then the records.  Then no poll is counted twice: if a record's polls are in
 * the counters already, the record is seen to be free.  And no task seems to have ended that has
 * not: if it was counted as spawned, its record is seen to be live, or to be in the making.  What
 * is missed in this way may make a sum less than before, so the caller gets the greatest sum so
 * far.
 */

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <tdt/counters.h>

#include "base/clock.h"
#include "base/result.h"
#include "facts/lost.h"
#include "registry/handle.h"
#include "registry/registry.h"

static void add_counters(struct tdt_counts *sum)
{
	const struct tdt_registry_counters *one = (void *)(uintptr_t)tdt__registry.counters;

	for (uint32_t i = 0; i < tdt__registry.n_counters; i++, one++) {
		/* Acquire: pairs with tdt__registry_take() and tdt__handle_over(). */
		sum->spawned += __atomic_load_n(&one->spawned, __ATOMIC_ACQUIRE);
		sum->polls += __atomic_load_n(&one->polls, __ATOMIC_ACQUIRE);
		sum->panicked += TDT__PEEK(one->panicked);
		sum->captures += TDT__PEEK(one->captures);
		sum->dumps += TDT__PEEK(one->dumps);
		sum->lost_wakeups += TDT__PEEK(one->lost);
	}
}

/* Leave out those that may still be taken back. */
static void subtract_unsure(uint64_t *lost)
{
	uint64_t now = *lost != 0 ? tdt__clock() : 0;

	for (int i = 0; now != 0 && i < TDT__LOST; i++)
		if (TDT__PEEK(tdt__lost[i].number) != 0 &&
		    !tdt__lost_is_sure(TDT__PEEK(tdt__lost[i].when), now))
			*lost -= *lost != 0;
}

/*
 * Copy what matters here of a record.  False: it has no task, or is being passed from one task to
 * another.
 */
static bool see_record(const struct tdt_handle *task, struct tdt_task_record *seen)
{
	/* Acquire what the task was made with.  Pairs with tdt__registry_publish(). */
	uint32_t seq = __atomic_load_n(&task->record.seq, __ATOMIC_ACQUIRE);

	/* Acquire: if a poll is going on, `since` is its beginning.  Pairs with wrapper.c. */
	seen->state = __atomic_load_n(&task->record.state, __ATOMIC_ACQUIRE);
	seen->polls = TDT__PEEK(task->record.polls);
	seen->since = TDT__PEEK(task->record.since);
	seen->woken = TDT__PEEK(task->record.woken);
	seen->woken_polls = TDT__PEEK(task->record.woken_polls);
	/* Read all of it before `seq` again.  Pairs with the fence in tdt__registry_take(). */
	atomic_thread_fence(memory_order_acquire);
	return seq % 2 == 0 && TDT__PEEK(task->record.seq) == seq &&
	       seen->state != TDT_TASK_RECORD_FREE;
}

/* Returns the number of records that are in the making: their tasks may be counted as spawned. */
static uint64_t add_records(struct tdt_counts *sum)
{
	struct tdt__cursor cursor = { 0 };
	uint64_t now = tdt__clock(), making = 0;
	struct tdt_task_record seen = { 0 };
	struct tdt_handle *task;

	while ((task = tdt__registry_next(&cursor)) != NULL)
		if (see_record(task, &seen)) {
			sum->polls += seen.polls;
			tdt__count_state(sum, tdt__record_state(&seen),
					 tdt__time_since(now, seen.since));
		} else {
			making += TDT__PEEK(task->record.seq) % 2;
		}
	return making;
}

/* Return the greatest value that any call has had.  Relaxed: nothing depends on it. */
static uint64_t greatest_of(_Atomic uint64_t *greatest, uint64_t value)
{
	uint64_t before = atomic_load_explicit(greatest, memory_order_relaxed);

	while (before < value &&
	       !atomic_compare_exchange_weak_explicit(greatest, &before, value,
						      memory_order_relaxed, memory_order_relaxed))
		;
	return before < value ? value : before;
}

static void fill_counters(struct tdt_counts *sum)
{
	static _Atomic uint64_t polls, ended, lost;
	uint64_t live;

	add_counters(sum);
	live = add_records(sum);
	live += sum->waiting + sum->runnable + sum->running;
	subtract_unsure(&sum->lost_wakeups);
	sum->lost_wakeups = greatest_of(&lost, sum->lost_wakeups);
	sum->polls = greatest_of(&polls, sum->polls);
	sum->ended = greatest_of(&ended, sum->spawned > live ? sum->spawned - live : 0);
}

int tdt_counters(struct tdt_counts *counters)
{
	struct tdt_counts ours = { 0 };
	size_t size = counters != NULL ? counters->size : 0;

	if (size < sizeof size)
		return tdt__result(-EINVAL);
	fill_counters(&ours);
	ours.size = size;
	memset(counters, 0, size);
	memcpy(counters, &ours, size < sizeof ours ? size : sizeof ours);
	return 0;
}
