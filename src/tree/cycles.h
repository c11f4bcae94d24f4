/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Which tasks wait for each other, and where that forms a ring.
 *
 * A task that waits has an edge to each task that a wait of its leaves names as its owner.  An id
 * that several tasks have names none of them.  Tasks that run or have ended have no edges.
 *
 * A ring alone proves nothing: a task of the ring may have another leaf that lets it go on (a
 * select with a timeout).  The ring is a *deadlock* if it lies in a closed set: all tasks of the
 * set wait, each of their leaves has reported what it waits for, and that is always a task of the
 * set.  No task of the set is ever woken, neither by another task of the set nor by anything else,
 * whether the tasks wait in joins or in selects.  If that is known from records alone, a leaf that
 * reports nothing may have been overlooked, and the ring is *unproven*.
 */

#include <stddef.h>

#include <tdt/dump.h>

struct tdt__cycles {
	struct tdt_snapshot_cycle *cycle; /* deadlocks first, then unproven ones, then by id */
	const struct tdt_snapshot_cycle **list; /* pointers to them */
	size_t n;
	const struct tdt_task_info **tasks; /* of all cycles */
};

/* How it is known that what `info` says of a waiting task is true of one moment that all share. */
enum tdt__proof {
	TDT__UNSURE,    /* it is not known */
	TDT__BY_RECORD, /* from a record: one leaf has reported its wait; others may be silent */
	TDT__BY_TREE,   /* from a record, and a tree that shows that there is no other leaf */
	TDT__BY_POLL    /* from a poll, whose leaves are counted in `info` */
};
typedef enum tdt__proof tdt__proof_fn(const struct tdt_task_info *info);

/*
 * Find a ring in each set of tasks that wait for each other: a short one, which begins with the
 * smallest id.  A task for which `proof` returns TDT__UNSURE takes part in no deadlock.  Without
 * memory no ring is found.  The time grows linearly with the number of tasks and waits.
 */
void tdt__cycles_find(struct tdt__cycles *cycles, const struct tdt_task_info *const *tasks,
		      size_t n, tdt__proof_fn *proof);
void tdt__cycles_fini(struct tdt__cycles *cycles);
