/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The tasks of one registry of a target, as one look found them: what their records say, in the
 * form that findings and printers take (tree/findings.h).
 */

#include <tdt/dump.h>
#include <tdt/layout/outside.h>
#include <tdt/layout/registry.h>

#include "base/arena.h"
#include "facts/lost.h"
#include "facts/orphans.h"
#include "reader/find.h"
#include "reader/images.h"
#include "reader/records.h"
#include "tree/cycles.h"
#include "tree/findings.h"

struct tdt__seen_task {
	struct tdt__member member; /* first; the findings of a dump are made of it */
	const struct tdt__seen *seen; /* NULL: of a recording (last_states.h) */
	struct tdt_wait wait; /* the main one, if `main_wait` is what `member.info.waits` is */
	const struct tdt_wait *main_wait; /* points to it */
	const char *outcome;  /* "ready", "panicked" or "dropped"; NULL: the task has not ended */
	const char *last;     /* its last known state, if the state is unknown: "waiting" or
				 "runnable"; NULL: none is known */
	uint64_t answered_at; /* when its last poll has answered a request (fresh.h); 0: it has
				 not */
	bool went_on; /* since its answer, so `member.info` is not what the record says */
};

struct tdt__tasks {
	struct tdt__target *target; /* NULL: of a recording, as the images */
	struct tdt__images *images;
	struct tdt_registry registry;
	struct tdt_registry_counters counters; /* of the whole registry */
	struct tdt__records records;
	struct tdt__seen_task *task; /* one for each record */
	size_t n;
	bool woken;   /* the wake-up of any task was reported */
	/*
	 * CLOCK_MONOTONIC of the target at the time of the look; of a core file the latest time in
	 * it, so that all ages are at least what they seem to be.
	 */
	uint64_t now;
	struct tdt__losts losts;     /* the lost wake-ups of the registry */
	struct tdt__orphans orphans; /* by tdt__tasks_settle() */
	struct tdt__arena arena;     /* names of files */
};

/* Which tasks are of interest. */
struct tdt__task_choice {
	const uint64_t *ids; /* only these tasks, in ascending order */
	size_t n_ids;	     /* 0: all tasks */
	bool unseen; /* request only those whose last tree does not show where they wait now */
};

/*
 * Look at the tasks.  `target` and `images` must outlive them.  Returns 0 or -ENOMEM; then there is
 * nothing to free.
 */
int tdt__tasks_read(struct tdt__tasks *tasks, struct tdt__target *target,
		    struct tdt__images *images, const struct tdt__found *found);
void tdt__tasks_fini(struct tdt__tasks *tasks);

/*
 * See tdt__task_entry(); 0 also if the library of the target is too old.  Of `tasks`, only the
 * target and the registry.
 */
uint64_t tdt__seen_entry(struct tdt__tasks *tasks, const struct tdt_task_record *record);

/*
 * Give tasks without a name that of the function that they run, if it is found by `deadline`: see
 * tdt__task_entry().  Called by the process that prints, since it looks up names (cli/apart.h).
 */
void tdt__tasks_name(struct tdt__tasks *tasks, uint64_t deadline);

/*
 * Read the record of a task again, which was not as it was listed when its stack was read.  Returns
 * whether it has changed since; then `task` says what it says now.  False also if the task is gone.
 */
bool tdt__task_renew(struct tdt__tasks *tasks, struct tdt__seen_task *task);

/* Set what the leaves wait for, the main wait first.  Without memory that is not known. */
void tdt__task_set_waits(struct tdt__tasks *tasks, struct tdt__seen_task *task,
			 const struct tdt_wait *waits, uint32_t n);

static inline bool tdt__tasks_at_least(const struct tdt__tasks *tasks)
{
	return tasks->target != NULL && tasks->target->core != NULL;
}

/* Which process the tasks are of, and when they were read. */
static inline struct tdt_snapshot_process tdt__tasks_process(const struct tdt__tasks *tasks)
{
	return (struct tdt_snapshot_process){ .size = sizeof(struct tdt_snapshot_process),
					      .pid = tasks->registry.pid,
					      .registry = tasks->registry.self,
					      .start_real_ns = tasks->registry.start_real,
					      .now_ns = tasks->now };
}

/* Say in the findings of a dump which process it is of.  False: no memory. */
bool tdt__tasks_note_process(const struct tdt__tasks *tasks, struct tdt__findings *findings);

/* Choose these tasks; `ids`, which still belong to the caller, are sorted. */
void tdt__choose_ids(struct tdt__task_choice *choice, uint64_t *ids, size_t n);

/* Whether the task is of interest, and has not ended. */
bool tdt__is_chosen_id(const struct tdt__task_choice *choice, uint64_t id);
bool tdt__task_is_chosen(const struct tdt__seen_task *task, const struct tdt__task_choice *choice);

/* Where the locks lie for which the tasks wait.  Of `tasks`, only the target and the registry. */
struct tdt__lock_places tdt__tasks_locks(struct tdt__tasks *tasks);

/* Find the futurelocks (tree/futurelocks.h) and the orphaned locks (facts/orphans.h). */
void tdt__tasks_settle(struct tdt__tasks *tasks);

/* Find the busy loops of a process (facts/busy.h). */
void tdt__tasks_busy(struct tdt__tasks *tasks);

/*
 * The orphaned locks and the lost wake-ups, without traces, as long as the tasks live; none without
 * memory.
 */
void tdt__tasks_found(struct tdt__tasks *tasks, struct tdt_snapshot *found);

/* Those of the tasks that have not ended; the caller frees the array.  NULL: no memory. */
const struct tdt_task_info **tdt__tasks_live(const struct tdt__tasks *tasks, size_t *n);

/*
 * Find the rings of tasks that wait for each other, by the `member.proof` of the tasks.  The caller
 * calls tdt__cycles_fini() before tdt__tasks_fini().  Returns 0 or -ENOMEM.
 */
int tdt__tasks_cycles(struct tdt__cycles *cycles, struct tdt__tasks *tasks);

/*
 * Find out whether a task of a ring has stood still since it was read, so that what the tasks say
 * of each other is true of one moment: set its `member.proof`.  The leaves of its tree, if there is
 * one, must be in `member.info` by then.
 */
void tdt__task_prove(struct tdt__tasks *tasks, struct tdt__seen_task *task);
