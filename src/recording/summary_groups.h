/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The groups of a summary (summary.h).
 *
 *   family   tasks whose names differ in nothing but numbers, or that have no name and the same
 *            spawn place.  Its latencies are collected.
 *   waits    the waits for one lock with one holder; or the waits of another kind for one object at
 *            one place: a stack, or without a stack the family of the task.  Which timer, which
 *            descriptor and which awaited task it is makes no difference: each of many tasks has
 *            its own.
 */

#include <stdint.h>

#include "base/array.h"
#include "recording/summary.h"
#include "recording/waits.h"

struct tdt__recorded_task;

#define TDT__NO_GROUP UINT32_MAX

/* A struct of all zeros, but for `task`, has no groups. */
struct tdt__summary_waits {
	struct tdt__summary_wait wait;
	uint32_t stack;	 /* that all of these waits have; 0: none, or they are for a lock */
	uint32_t family; /* the same of the family; 0 if there is a stack */
};

struct tdt__summary_groups {
	const struct tdt__recorded_task *task; /* the recording's table of tasks */
	uint32_t *family_of; /* of each task, plus 1; 0: not known yet.  The owner's array */

	TDT__TABLE(struct tdt__summary_latency, family, n_families); /* by name */
	TDT__TABLE(struct tdt__summary_waits, waits, n_waits);

	/* The family of each latency in the upper bits, its length in the others. */
	uint64_t *latency;
	size_t n_latencies, latencies_room;
};

/*
 * The number of the group of a wait of task `task` (its number); TDT__NO_GROUP: no memory.
 * `stack`: where it waits; 0: unknown.
 */
uint32_t tdt__summary_groups_wait(struct tdt__summary_groups *groups, uint32_t task,
			  const struct tdt_wait *wait, uint32_t stack);
/* Add to that group a wait of the task, at the stack. */
void tdt__summary_groups_add_wait(struct tdt__summary_groups *groups, uint32_t group,
				  uint32_t task, uint32_t stack, uint64_t start, uint64_t ns,
				  bool going_on);

/* Add a latency to the family of the task.  Returns 0 or -ENOMEM. */
int tdt__summary_groups_add_latency(struct tdt__summary_groups *groups, uint32_t task, uint64_t at,
			    uint64_t ns);

/* Find the quantiles of all families, after the last latency.  Returns 0 or -ENOMEM. */
int tdt__summary_groups_find_quantiles(struct tdt__summary_groups *groups);

void tdt__summary_groups_fini(struct tdt__summary_groups *groups);
