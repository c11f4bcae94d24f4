/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A profile: many looks at the tasks of a process, and what each of them was found doing.  Nothing
 * is stopped, and nothing is requested.  profile_sum.h says what the looks add up to.
 *
 * A look reads each record once.  Of a task that is polled, the stack is read; and of any task the
 * last tree, unless it was read at an earlier look.
 */

#include "reader/fresh.h"
#include "reader/live.h"
#include "reader/profile_sum.h"
#include "reader/tasks.h"
#include "reader/trees.h"

/* The last tree of a task, as far as the watch made it. */
struct tdt__profiled_tree {
	uint64_t polls, when; /* of the poll that it is of */
	uint32_t trees;       /* the young trees that it belongs to, by their number in the sum */
	float chance;         /* that the watch captured that poll */
	uint8_t young;        /* bins of ages at which it is young */
};

/* What is remembered of a task from look to look. */
struct tdt__profiled {
	uint64_t id;
	uint64_t polls;     /* of the record, at the last look that found the task waiting */
	uint32_t published; /* the trees that the task had then */
	uint32_t group;     /* of its wait after that poll; TDT__PROFILE_NONE: it is stale */
	uint32_t name;
	uint32_t poll_tree; /* of its poll function alone */
	float chance;       /* that the watch captured that poll */
	uint8_t stale_looks; /* in a row, 2 at most */
	struct tdt__profiled_tree tree;
};

struct tdt__profiled_slab {
	uint64_t address;
	struct tdt__profiled *task; /* by the number of its record in the slab */
	size_t room;
};

/* A task that has to be looked at more closely. */
struct tdt__profile_candidate {
	struct tdt__profiled *task;
	struct tdt__seen seen;
};

/*
 * The most candidates that are looked at together: the time from the record to the tree is short.
 */
#define TDT__PROFILE_TOGETHER 64

struct tdt__profile {
	struct tdt__profile_sum sum;
	uint64_t looks;
	uint64_t found;        /* tasks, in all looks together */
	bool damaged;          /* not all records could be read */
	struct tdt__sampling sampling;
	/*
	 * From when on the process was watched, by its own clock: waits that began before have no
	 * tree for a reason that says nothing of them.  0: it was watched all the time; UINT64_MAX:
	 * it is not.
	 */
	uint64_t watched_from;
	const struct tdt__answers *answers; /* what was requested at the beginning */

	/* Private to profile.c. */
	struct tdt__tasks tasks; /* without records */
	struct tdt__tree_reader trees;
	struct tdt__live_stacks live;
	TDT__TABLE(struct tdt__profiled_slab, slab, n_slabs); /* by address */
	struct tdt__profile_candidate candidate[TDT__PROFILE_TOGETHER];
	size_t n_candidates;
	unsigned walks; /* stacks that may still be read in this look */
	double ns;      /* for which this look stands */
	uint64_t now;   /* by the clock of the process: the records were just read */
};

/*
 * Begin a profile of the tasks of a registry.  `target` and `images` must outlive it, as must the
 * files' names that its trees get.  The caller sets `watched_from` and `answers` then.  Returns 0
 * or -ENOMEM; then there is nothing to end.
 */
int tdt__profile_begin(struct tdt__profile *profile, struct tdt__target *target,
		       struct tdt__images *images, const struct tdt__found *found);
void tdt__profile_end(struct tdt__profile *profile);

/*
 * Look at all tasks, for the `ns` nanoseconds that the look stands for.  Returns 0 or -ENOMEM.  A
 * process that has ended has no tasks any more.
 */
int tdt__profile_look(struct tdt__profile *profile, double ns);
