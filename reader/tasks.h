/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_READER_TASKS_H
#define TDT_READER_TASKS_H

/*
 * The tasks of one registry of a target, as one look found them: what their records say, in the
 * form that findings and printers take (tree/findings.h).
 */

#include <tdt/dump.h>
#include <tdt/registry.h>

#include "base/arena.h"
#include "reader/find.h"
#include "reader/images.h"
#include "reader/records.h"
#include "tree/cycles.h"
#include "tree/findings.h"

struct tdt__seen_task {
	struct tdt__member member; /* first; the findings of a dump are made of it */
	const struct tdt__seen *seen; /* NULL: of a recording (last_states.h) */
	struct tdt_wait wait; /* what `member.info.waits` points to */
	const char *outcome;  /* "ready", "panicked" or "dropped"; NULL: the task has not ended */
	const char *last;     /* its last known state, if the state is unknown: "waiting" or
				 "runnable"; NULL: none is known */
	bool answered;        /* its last poll has answered a request (fresh.h) */
	uint64_t answered_at; /* when that was; 0: it has not */
};

struct tdt__tasks {
	struct tdt__target *target; /* NULL: of a recording, as the images */
	struct tdt__images *images;
	struct tdt_registry registry;
	struct tdt_registry_counters counters; /* of the whole registry */
	struct tdt__records records;
	struct tdt__seen_task *task; /* one for each record */
	size_t n;
	uint64_t now; /* CLOCK_MONOTONIC of the target at the time of the look */
	struct tdt__arena arena; /* names of files */
};

/* Which tasks are of interest. */
struct tdt__task_choice {
	const uint64_t *ids; /* only these tasks */
	size_t n_ids;	     /* 0: all tasks */
};

/*
 * Look at the tasks.  `target` and `images` must outlive them.  Returns 0 or -ENOMEM; then there is
 * nothing to free.
 */
int tdt__tasks_read(struct tdt__tasks *tasks, struct tdt__target *target,
		    struct tdt__images *images, const struct tdt__found *found);
void tdt__tasks_fini(struct tdt__tasks *tasks);

/* Which process the tasks are of, and when they were read. */
static inline struct tdt_snapshot_process tdt__tasks_process(const struct tdt__tasks *tasks)
{
	return (struct tdt_snapshot_process){ .pid = tasks->registry.pid,
					      .registry = tasks->registry.self,
					      .start_real_ns = tasks->registry.start_real,
					      .now_ns = tasks->now };
}

/*
 * Find out which waiting tasks have stood still since they were read, so that what they say of each
 * other is true of one moment: set `member.proof` of each task, which tdt__cycles_find() needs.
 * The leaves of a tree, if there is one, must be in `member.info` by then, and `answered` be set.
 * Also find out which of their locks are in a futurelock (tree/futurelocks.h).
 */
void tdt__tasks_prove(struct tdt__tasks *tasks);

/*
 * Find the rings of tasks that wait for each other, by what their records prove: a recording proves
 * no deadlock, because a lock may have passed on since its holder was reported.  The caller calls
 * tdt__cycles_fini() before tdt__tasks_fini().  Returns 0 or -ENOMEM.
 */
int tdt__tasks_rings(struct tdt__cycles *cycles, struct tdt__tasks *tasks);

#endif
