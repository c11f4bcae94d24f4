/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_WATCHED_H
#define TDT_SRC_WATCHED_H

/*
 * The last trees of watched tasks, in the layout of <tdt/registry.h>.
 *
 * A task owns one struct tdt_registry_watched, room for two trees, from its first watched poll until its record is free.
 * There are some sizes of it, each with a pool: who outgrows his takes a larger one, and gives the other back.
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt_handle;
struct tdt__capture;

/* The most frames of a tree; what is beyond is cut, and marked. */
#define TDT__WATCHED_MAX 512

/* --- The poller's side: no lock, no allocation, no system call --- */

/* Make the capture the task's last tree.  Where there is no room for it now, the one before stays. */
void tdt__watched_keep(struct tdt_handle *task, const struct tdt__capture *capture);

/* Give back the trees of a task that nobody has a reference to. */
void tdt__watched_drop(struct tdt_handle *task);

/* --- The readers' --- */

struct tdt__watched_tree {
	struct tdt__capture *capture; /* its stacks, for the caller to unref */
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

/* Have enough in the pools for what is going to be taken until the next time.  False: no memory for all of it. */
bool tdt__watched_stock(void);

#endif
