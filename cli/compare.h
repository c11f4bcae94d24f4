/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Comparing two snapshots: which tasks have not moved in between, which have come and gone, and at
 * which places there are more tasks than before.
 *
 * Tasks are compared if both snapshots are of one process.  A task is the same if its id and the
 * moment of its spawn are.  It has not moved if its last poll began at the same moment and no poll
 * has begun since, apart from polls that were made only for requests.
 *
 * A place is a tree, by the names of its frames, so that the places of two processes can be
 * compared.  If the names are missing, it is the modules and offsets.  For a task without a tree,
 * it is what the task waits for and where it was spawned.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <tdt/dump.h>

enum compare_fate {
	FATE_STUCK,    /* it has not moved: the same wait, the same poll, or woken but not polled */
	FATE_RETURNED, /* it was polled, and waits at the same place again */
	FATE_MOVED,    /* it was polled otherwise */
	FATE_CAME,     /* only the later snapshot has it */
	FATE_WENT,     /* only the earlier one does */
	FATES
};

struct compare_place {
	const struct tdt_trace *trace;        /* NULL: the tasks have no tree */
	const struct tdt_task_info *example; /* a task that is there */
	size_t before, after;                 /* the numbers of tasks */
	uint32_t number;                      /* private to compare.c: before it was sorted */
};

/* Tasks with one fate, one state, and one place.  The task that has been so longest comes first. */
struct compare_group {
	enum compare_fate fate;
	uint32_t place;
	/*
	 * As they are later, or for FATE_WENT, as they were.  The tree of tasks that did not move
	 * may be that of the earlier snapshot.
	 */
	struct tdt_snapshot_group tasks;
};

struct comparison {
	const struct tdt_snapshot *after;
	bool same_process; /* otherwise there are places, and no groups */
	/* Places can be compared: both snapshots have trees of tasks that wait, or none has. */
	bool has_grown;
	uint64_t apart_ns; /* between the snapshots; 0: unknown */
	size_t fates[FATES]; /* the numbers of tasks */
	struct compare_place *place; /* the one that has grown most is first */
	size_t n_places;
	struct compare_group *group; /* by fate, and the group with most tasks first */
	size_t n_groups;

	/* Private to compare.c. */
	const struct tdt_task_info **tasks;
};

/*
 * Compare two snapshots, which must outlive the comparison.  Returns 0; -EINVAL: they are of one
 * process, and `before` is the later one; or -ENOMEM.  After 0 the caller frees the comparison.
 */
int compare(struct comparison *comparison, const struct tdt_snapshot *before,
	    const struct tdt_snapshot *after);
void comparison_fini(struct comparison *comparison);

struct tdt__out;

/* In `print`, nothing is TDT_PRINT_AUTO.  Errors are kept in `out`. */
void diff_text(struct tdt__out *out, const struct comparison *comparison,
	       const struct tdt_print_options *print);
void diff_json(struct tdt__out *out, const struct comparison *comparison);
