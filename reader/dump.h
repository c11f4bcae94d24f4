/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A dump from outside: where all tasks wait.  Of each task it has the best that there is: the
 * answer to a request, the stack of a poll that goes on, the stack of a suspended fiber, the list
 * at which the task waits, the last watched tree, or the record alone.
 */

#include "reader/fresh.h"
#include "reader/tasks.h"
#include "reader/threads.h"

/*
 * Make the findings of `tasks`, which must outlive them; the caller frees them.  The tasks were
 * read after `answers` had come.  `sampling` says afterwards whether the stacks of running threads
 * could be read.  The files of the modules in the trees are open then.  NULL: no memory.
 */
struct tdt__findings *tdt__outside_dump(struct tdt__tasks *tasks,
					const struct tdt__task_choice *choice,
					const struct tdt__answers *answers,
					struct tdt__sampling *sampling);

/* What is found without a dump: the live tasks, as one group, their rings, what else is wrong. */
struct tdt__outside_found {
	struct tdt_snapshot snapshot;

	/* Private to dump.c. */
	struct tdt__cycles cycles;
	struct tdt_snapshot_group live;
	const struct tdt_snapshot_group *group; /* points to it, so this struct stays where it is */
	const struct tdt_task_info **infos;
};

/*
 * Find that.  As in a dump without requests, the trees of tasks in rings are read, and no others.
 * The caller calls tdt__outside_found_fini() before tdt__tasks_fini(), in any case.  Returns 0 or
 * -ENOMEM.
 */
int tdt__outside_found(struct tdt__outside_found *found, struct tdt__tasks *tasks);
void tdt__outside_found_fini(struct tdt__outside_found *found);

/*
 * Keep, of each task that went on in the poll that brought its answer, what `before` saw of it: the
 * findings of a look that was made before the requests, and which outlive these.
 */
void tdt__outside_keep(struct tdt__findings *findings, const struct tdt__findings *before,
		       const struct tdt__answers *answers);
