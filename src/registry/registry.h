/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Where the records of tasks are stored, for <tdt/layout/registry.h> and for all threads that read
 * the records of tasks which they do not poll.
 *
 * Memory that was a record once stays a record: it is given to other tasks, and never back to
 * malloc.  So a reader that has reached a record may read it at any time, and finds out afterwards,
 * by `seq` and `id`, whose record it was.
 *
 * Records are given out by several *shards*, one for each slot of threads (host/slot.h), with slabs
 * of its own.  A record goes back to the shard that it came from, whichever thread gives it back.
 * Only the threads that share a slot need a lock.  Each step is one store: a child of fork() finds
 * the shards of threads that are not there as they were before or after it.
 *
 *   tdt__registry_take, publish   the thread that makes the task; no other thread knows the task
 *   the record's other fields     the poller, each by one store; `woken` and `woken_by`: the thread
 *                                 that wakes the task
 *   tdt__registry_give            the thread that gives back the last reference
 *   the counters                  any thread; `spawned` and `polls`: the owner of the slot
 *   tdt__registry_next, read      any thread, at any time, without a lock, for any record
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

struct tdt_handle;

/* What readers outside find by its magic. */
extern struct tdt_registry tdt__registry;

/* The last tasks that panicked: see task/panics.c. */
#define TDT__PANICS 16
extern struct tdt_registry_panic tdt__panics[TDT__PANICS];

/* The last tasks that ended with a lock: see holders.c. */
#define TDT__HOLDERS 64
extern struct tdt_registry_holder tdt__holders[TDT__HOLDERS];

/* The last lost wake-ups: see task/lost.c. */
#define TDT__LOST 16
extern struct tdt_registry_lost tdt__lost[TDT__LOST];

/*
 * Access to a field of a record that other threads may access meanwhile.  Relaxed: a reader gets
 * one of the values that the field had.  Where other fields depend on the order of an access
 * (`state`, `seq`), the code says so and uses __atomic itself.
 */
#define TDT__PEEK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define TDT__POKE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

/*
 * A record as words, for the same kind of access, whatever the types of its fields are.  A copy of
 * a record has the words from the first one, which has `seq` and `state`, up to the last one.  The
 * words outside of these are only for readers outside the process.
 */
typedef uint64_t __attribute__((may_alias)) tdt__record_word;
#define TDT__RECORD_WORD(field)                                                                    \
	(offsetof(struct tdt_task_record, field) / sizeof(tdt__record_word))
#define TDT__RECORD_FIRST TDT__RECORD_WORD(seq)
#define TDT__RECORD_LAST TDT__RECORD_WORD(suspended_fp)

static inline tdt__record_word *tdt__record_words(const struct tdt_task_record *record)
{
	return (tdt__record_word *)(uintptr_t)record;
}

/*
 * Returns memory for a task: `kept`, a record that was not given back when it was to be, unless
 * that is NULL.  All of it is zero but what task.c's record_new() sets, and `record.seq`, which is
 * odd until tdt__registry_publish().  NULL: there is no memory; errno is ENOMEM.
 */
struct tdt_handle *tdt__registry_take(struct tdt_handle *kept);

/* A task was counted twice, as another record of it was made: undo the count of one. */
void tdt__registry_uncount(void);

/* Let readers find the record, which is now filled in. */
static inline void tdt__registry_publish(struct tdt_task_record *record)
{
	/* Release all fields that were filled in.  Pairs with tdt__registry_read(). */
	__atomic_store_n(&record->seq, record->seq + 1, __ATOMIC_RELEASE);
}

/* Give back a record to which nobody has a reference, and whose `state` is TDT_TASK_RECORD_FREE. */
void tdt__registry_give(struct tdt_handle *task);

/*
 * Returns every record that was ever in use, one after the other, those of the oldest slab first:
 * so tasks come nearly in the order of their ages.  The cursor is all zero at first.  NULL: there
 * are no more.
 */
struct tdt__cursor {
	struct tdt_registry_slab *slab, *newest;
	uint32_t index, left; /* the next record of `slab`; how many slabs are newer */
	bool begun;
};
struct tdt_handle *tdt__registry_next(struct tdt__cursor *cursor);

/*
 * Copy the record, all of it of one task.  (The words that are only for readers outside are not
 * copied: see TDT__RECORD_FIRST.)  What the task's leaves wait for is left out
 * (`wait_count` is 0) while the task is polled.  Returns false if the record has no task, or has
 * none any more; a task that has ended still counts.
 */
bool tdt__registry_read(const struct tdt_handle *task, struct tdt_task_record *copy);

/* The counters that this thread adds to.  Other threads may add to them, too. */
struct tdt_registry_counters *tdt__registry_counters(void);

/* Count polls of a record that is given back.  Release. */
void tdt__registry_count_polls(uint64_t n);

/* Add 1 to a counter.  Relaxed: only the sum matters. */
#define TDT__COUNT(field)                                                                          \
	__atomic_fetch_add(&tdt__registry_counters()->field, 1, __ATOMIC_RELAXED)
#define TDT__UNCOUNT(field)                                                                        \
	__atomic_fetch_sub(&tdt__registry_counters()->field, 1, __ATOMIC_RELAXED)

/*
 * The library begins its work: note when, and in which process.  In a child of fork(), only the
 * process is noted.
 */
void tdt__registry_begin(void);
void tdt__registry_forked(void);

/* Whether the task of that record has not ended. */
static inline bool tdt__record_is_live(const struct tdt_task_record *record)
{
	return record->state == TDT_TASK_RECORD_IDLE || record->state == TDT_TASK_RECORD_POLLING;
}

/* Take and release the lock, for fork.c. */
void tdt__registry_lock(void);
void tdt__registry_unlock(void);
