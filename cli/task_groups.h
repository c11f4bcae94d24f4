/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * How many tasks of one name, but for the numbers in it, wait for one kind of object: for metrics,
 * where the number of series has a bound.
 */

#include "base/array.h"
#include "cli/metrics_page.h"
#include "reader/tasks.h"

/* All zeros: none. */
struct task_groups {
	TDT__TABLE(struct metrics_group, group, n);
	uint64_t left; /* tasks of groups for which there is no room */
};

/* Add the tasks that have not ended. */
void task_groups_count(struct task_groups *groups, const struct tdt__tasks *tasks);

/* Write the largest groups into the page, and how many tasks the others have.  Only once. */
void task_groups_largest(struct task_groups *groups, struct metrics_page *page);

void task_groups_fini(struct task_groups *groups);
