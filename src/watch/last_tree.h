/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_WATCH_LAST_TREE_H
#define TDT_SRC_WATCH_LAST_TREE_H

/*
 * The last trees of watched tasks, in the layout of <tdt/registry.h>.
 *
 * A task owns one struct tdt_registry_watched, room for two trees, from its first watched poll until its record is free.
 * There are some sizes of it, each with a pool: who outgrows his takes a larger one, and gives the other back.
 *
 * A task that hangs is not polled again, so its first poll must find room for a tree.  While the
 * watch is on each task is promised one when it is spawned, of the size that first trees usually
 * need, and as many lie in that pool.  The promise is noted in the record's `own_epoch`, and
 * redeemed when the task's first captured poll has ended.  Those that were not promised one leave
 * as many as were.  (tdt_watch() makes enough for the tasks that are there already.)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tdt_handle;
struct tdt__capture;

/* The most frames of a tree; what is beyond is cut, and marked. */
#define TDT__WATCHED_MAX 512

/* What `own_epoch` is with a promise: this, and which size.  No epoch is as large. */
#define TDT__PROMISED 0xfff0u

static inline bool tdt__is_promised(uint16_t own_epoch)
{
	return own_epoch >= TDT__PROMISED;
}

/* --- The spawner's side --- */

/*
 * Promise room to a task that nobody knows yet, if the watch is on.  Without memory there is no
 * promise.
 */
void tdt__watched_promise(struct tdt_handle *task);

/* --- The poller's side: no lock, no allocation, no system call --- */

/* Make the capture the task's last tree.  Where there is no room for it now, the one before stays. */
void tdt__watched_keep(struct tdt_handle *task, const struct tdt__capture *capture);

/* The promise, if `own_epoch` is one, needs not be kept any more. */
void tdt__watched_redeem(uint16_t own_epoch);

/* Give back the trees of a task that nobody has a reference to. */
void tdt__watched_drop(struct tdt_handle *task);

/* --- The readers' --- */

struct tdt__watched_tree {
	struct tdt__stacks *stacks; /* for the caller to free */
	uint32_t published;           /* which tree it is, of those that were kept there */
	uint64_t polls;
	uint64_t when;
};

/*
 * Read the last tree of a task that the caller has a reference to.  Returns 0, -ENODATA (there is none) or -ENOMEM.
 * Takes tdt__unwind_lock.
 */
int tdt__watched_read(const struct tdt_handle *task, struct tdt__watched_tree *tree);

/* tdt_backtrace_last(), with ages as of that time; 0: now. */
struct tdt_trace *tdt__watched_trace(struct tdt_handle *task, uint64_t as_of);

/* --- The ticker's --- */

/* How many promises are to be kept; for tests. */
uint32_t tdt__watched_promises(void);

/* How many rooms for trees were made so far; for tests, under tdt__watch_lock or while nobody ticks. */
uint32_t tdt__watched_made(void);

/* How many tasks have no tree. */
uint32_t tdt__watched_without(void);

/* So many, which were promised nothing, are going to want room for one.  Under tdt__watch_lock. */
void tdt__watched_expect(uint32_t n);

/*
 * Have enough in the pools for what is going to be taken until the next time: count what there is to be made, then make
 * some of it, `n` at most, until that returns no more 1 (there is more), but 0 or -ENOMEM (no memory for all of it).  Under
 * tdt__watch_lock, which is to be given up in between: fork() waits for it.
 */
void tdt__watched_count(void);
int tdt__watched_stock(uint32_t n);

#endif
