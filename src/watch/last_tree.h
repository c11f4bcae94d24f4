/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The last trees of watched tasks, in the layout of <tdt/layout/registry.h>.
 *
 * From its first watched poll until its record is free, a task owns one struct
 * tdt_registry_watched, a room for two trees.  Rooms have several sizes, with a pool for each size.
 * A task that outgrows its room takes a larger one and gives the old one back.
 *
 * A task that hangs is not polled again, so its first poll must find room for a tree.  Therefore,
 * while the watch is on, each task is promised a room when it is spawned, of the size that first
 * trees usually need, and the pool of that size holds at least as many rooms as were promised.  The
 * promise is noted in the record's `own_epoch`, and is redeemed when the task's first captured poll
 * has ended.  A task without a promise takes a room only if the pool has more than were promised.
 * (tdt_watch() makes enough rooms for the tasks that exist already.)
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt_handle;
struct tdt_registry_entry;
struct tdt_registry_tree;
struct tdt__capture;

/* The most frames of a tree; further frames are cut off, and the cut is marked. */
#define TDT__LAST_TREE_MAX 512

/*
 * With a promise, `own_epoch` is this plus the number of the size.  All epochs are smaller, and
 * the flags are larger.
 */
#define TDT__PROMISED 0x3ff0u

static inline bool tdt__is_promised(uint16_t own_epoch)
{
	return own_epoch >= TDT__PROMISED;
}

/* --- The spawner's side --- */

/*
 * Promise room to a task that no other thread knows yet, if the watch is on.  If there is no
 * memory, the promise may not be kept.
 */
void tdt__last_tree_promise(struct tdt_handle *task);

/* --- The poller's side: no lock, no allocation, no system call --- */

/* Make the capture the task's last tree.  If there is no room for it, the previous tree stays. */
void tdt__last_tree_record(struct tdt_handle *task, const struct tdt__capture *capture);

/* If `own_epoch` is a promise, it is no longer to be kept. */
void tdt__last_tree_redeem(uint16_t own_epoch);

/* Write the first `room` frames of the capture as a tree with its entries. */
void tdt__tree_write(struct tdt_registry_tree *tree, struct tdt_registry_entry *entry,
		     uint32_t room, const struct tdt__capture *capture);

/* Copy the task's last tree, at most `room` entries of it.  Without a tree, nothing is copied. */
void tdt__last_tree_copy(const struct tdt_handle *task, struct tdt_registry_tree *to,
			 struct tdt_registry_entry *entry, uint32_t room);

/* Give back the trees of a task to which there is no reference any more. */
void tdt__last_tree_drop(struct tdt_handle *task);

/* --- The reader's side --- */

struct tdt__last_tree {
	struct tdt__stacks *stacks; /* the caller frees them */
	uint32_t published;         /* the number of the tree among those published in its room */
	uint64_t polls;
	uint64_t when;
};

/*
 * Read the last tree of a task to which the caller holds a reference.  Returns 0, -ENODATA (there
 * is none) or -ENOMEM.  Takes tdt__unwind_lock.
 */
int tdt__last_tree_read(const struct tdt_handle *task, struct tdt__last_tree *tree);

/*
 * Whether the task waits, was not woken, and its last tree is of its last poll.  Then the tree
 * shows all that a request could bring, and a request might change it.
 */
bool tdt__last_tree_shows(const struct tdt_handle *task);

/*
 * Make stacks of a tree that is not written any more.  The caller frees them.  NULL: no memory.
 * Takes tdt__unwind_lock.
 */
struct tdt__stacks *tdt__tree_stacks(const struct tdt_registry_tree *tree,
				     const struct tdt_registry_entry *entry);

/* As tdt_backtrace_last(), but ages are those at the time `as_of`; 0: now. */
struct tdt_trace *tdt__last_trace(struct tdt_handle *task, uint64_t as_of);

/* --- The ticker's side --- */

/* The number of promises that were not redeemed yet; for tests. */
uint32_t tdt__last_tree_promises(void);

/* How many rooms were made so far; for tests, under tdt__watch_lock or while the ticker sleeps. */
uint32_t tdt__last_tree_made(void);

/* The number of live tasks that have no tree. */
uint32_t tdt__last_tree_without(void);

/* Expect that `n` tasks without a promise will need a room.  Under tdt__watch_lock. */
void tdt__last_tree_expect(uint32_t n);

/*
 * Fill the pools with what is likely to be taken until the next time.  First count what is to be
 * made.  Then make it, at most `n` rooms in a call, as long as tdt__last_tree_stock() returns 1
 * (there is more to make).  It returns 0 when it has made everything, and -ENOMEM if there was no
 * memory for all of it.
 *
 * Under tdt__watch_lock.  The caller gives up the lock between the calls, because fork() waits for
 * it.
 */
void tdt__last_tree_count(void);
int tdt__last_tree_stock(uint32_t n);
