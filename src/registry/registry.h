/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_REGISTRY_REGISTRY_H
#define TDT_SRC_REGISTRY_REGISTRY_H

/*
 * Where tasks' records are kept, for <tdt/registry.h> and for all who look at tasks that are not theirs.
 *
 * Memory that was a record once stays one: it is given to other tasks, and never back to malloc.  So a reader that has
 * come to a record may look at it whenever it likes, and finds out afterwards whose it was, by `seq` and `id`.
 *
 * Records are given out by several *shards*, each with a lock and slabs of its own, that a thread chooses by its id:
 * threads that spawn and end tasks seldom meet.  A record goes back to the shard it came from, whoever gives it back.
 *
 *   tdt__registry_take, publish   whoever makes the task: nobody else knows it
 *   the record's other fields     the poller, each by one store; `woken` and `woken_by`: whoever wakes the task
 *   tdt__registry_give            whoever gives the last reference back
 *   tdt__registry_next, read      any thread, any time, with no lock, and of any record
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/registry.h>

struct tdt_handle;

/*
 * A field of a record, which others may look at meanwhile: relaxed, so that a reader gets one of the values it had.
 * Where more hangs on it (`state`, `seq`) the code says so and uses __atomic itself.
 */
#define TDT__PEEK(field) __atomic_load_n(&(field), __ATOMIC_RELAXED)
#define TDT__POKE(field, value) __atomic_store_n(&(field), (value), __ATOMIC_RELAXED)

/* The same, of a whole record: all of it is in words, whatever its fields are. */
typedef uint64_t __attribute__((may_alias)) tdt__record_word;
#define TDT__RECORD_WORDS (sizeof(struct tdt_record) / sizeof(tdt__record_word))

static inline tdt__record_word *tdt__record_words(const struct tdt_record *record)
{
	return (tdt__record_word *)(uintptr_t)record;
}

/* Memory for a task, all zero but `record.seq`, which is odd until tdt__registry_publish().  NULL: there is none. */
struct tdt_handle *tdt__registry_take(void);

/* The record is filled in: readers find it. */
void tdt__registry_publish(struct tdt_handle *task);

/* Give a record back that nobody has a reference to, and whose `state` is TDT_RECORD_FREE. */
void tdt__registry_give(struct tdt_handle *task);

/* Every place that was a record once, one after the other; start with all zeros.  NULL: that was the last. */
struct tdt__cursor {
	struct tdt_registry_slab *slab;
	uint32_t index;
	bool begun;
};
struct tdt_handle *tdt__registry_next(struct tdt__cursor *cursor);

/*
 * Copy the record, whole and of one task.  What its leaves wait for is left out (`wait_count` is 0) while the task is
 * polled.  False: there is no task (any more), live or ended.
 */
bool tdt__registry_read(const struct tdt_handle *task, struct tdt_record *copy);

/* Whether the task of that record has not ended. */
static inline bool tdt__record_is_live(const struct tdt_record *record)
{
	return record->state == TDT_RECORD_IDLE || record->state == TDT_RECORD_POLLING;
}

/* The locks, for fork.c. */
void tdt__registry_lock_all(void);
void tdt__registry_unlock_all(void);

#endif
