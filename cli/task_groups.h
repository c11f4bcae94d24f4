/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * How many tasks of one name, but for the numbers in it, wait for one kind of object, or how often
 * and how long they did: for metrics, where the number of series has a bound.
 */

#include "base/array.h"
#include "cli/metrics_page.h"
#include "reader/tasks.h"

/* All zeros: none. */
struct task_groups {
	TDT__TABLE(struct metrics_group, group, n);
	struct metrics_group left; /* the groups for which there is no room */
};

/* Add the tasks that have not ended. */
void task_groups_count(struct task_groups *groups, const struct tdt__tasks *tasks);

/* A tdt__waited_fn: add a wait to the struct task_groups at `arg`. */
void task_groups_waited(void *arg, const struct tdt__recorded_task *task, enum tdt_wait_kind kind,
			uint64_t ns);

/*
 * Add all of them to `sum`.  A group that `sum` has stays there: none of its numbers ever shrinks.
 * The largest of the others get the room that is left.
 */
void task_groups_add_to(struct metrics_groups *sum, struct task_groups *groups);

void task_groups_fini(struct task_groups *groups);
