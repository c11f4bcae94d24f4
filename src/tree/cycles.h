/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TREE_CYCLES_H
#define TDT_SRC_TREE_CYCLES_H

/*
 * Who waits for whom, and where that goes round in a ring.
 *
 * A task that waits has an edge to each task that a wait of its leaves names as its owner.  An id that several tasks
 * have names none of them; tasks that run or have ended have no edges.
 *
 * A ring alone proves nothing: a task of it may have another leaf that brings it on (a select with a timeout).  It is a
 * *deadlock* if it lies in a closed set: tasks that all wait, whose every leaf has told what it waits for, which is a
 * task of the set each time.  Nobody of the set is ever woken by another of it, nor by anybody else, be it joins or
 * selects that they wait in.
 */

#include <stdbool.h>
#include <stddef.h>

#include <tdt/dump.h>

struct tdt__cycles {
	struct tdt_snapshot_cycle *cycle; /* deadlocks first, then by id */
	size_t n;
	const struct tdt_trace_info **tasks; /* of all of them */
};

/* Whether what `info` says of a task that waits is true of one moment that it shares with all others. */
typedef bool tdt__sure_fn(const struct tdt_trace_info *info);

/*
 * Find a ring in each set of tasks that wait for each other: a short one, that begins with the smallest id.  A task
 * that `sure` (NULL: all are) says false of takes part in no deadlock.  Without memory there is none.  The time it
 * takes grows as the number of tasks and waits does.
 */
void tdt__cycles_find(struct tdt__cycles *cycles, const struct tdt_trace_info *const *tasks, size_t n,
		      tdt__sure_fn *sure);
void tdt__cycles_fini(struct tdt__cycles *cycles);

#endif
