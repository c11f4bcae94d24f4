/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What has happened in the target since the library began its work: how many tasks and polls there
 * were, the first misuse of the library, the last tasks that panicked, those that ended with a
 * lock, and the last lost wake-ups.
 */

#include <tdt/counters.h>
#include <tdt/misuse.h>

#include "facts/orphans.h"
#include "reader/tasks.h"
#include "reader/trees.h"

/*
 * Add up the counters of a registry, before its records are read (<tdt/layout/registry.h>,
 * "Counting").  They are 0 if they cannot be read.
 */
void tdt__history_counters(const struct tdt__target *target, const struct tdt_registry *registry,
			   struct tdt_registry_counters *sum);

/* Set all fields of `counts`, as tdt_counters() does in the target. */
void tdt__history_counts(const struct tdt__tasks *tasks, struct tdt_counts *counts);

/* A misuse, as it was read. */
struct tdt__seen_misuse {
	struct tdt_misuse misuse; /* `reason` points to the text below, and `poll` to the target */
	char reason[256];
};

/* Read the first misuse.  False: none was noticed, or it cannot be read, or cannot be right. */
bool tdt__history_misuse(const struct tdt__tasks *tasks, struct tdt__seen_misuse *seen);

/*
 * Add the last tasks that panicked to the findings, as far as there is memory, and how many there
 * were.  `reader` reads the trees of these tasks.
 */
void tdt__history_panics(struct tdt__tree_reader *reader, struct tdt__findings *findings);

/*
 * Read the lost wake-ups of a registry, of which its counters count `counted`.  The caller frees
 * their list.
 */
void tdt__history_losts(const struct tdt__target *target, const struct tdt_registry *registry,
			uint64_t counted, uint64_t now, struct tdt__losts *losts);

/* Add those of the chosen tasks to the findings, as far as there is memory. */
void tdt__history_lost(struct tdt__tree_reader *reader, struct tdt__findings *findings,
		       const struct tdt__task_choice *choice);

/*
 * Find the note of the task with this id, which ended with a lock, in the struct tdt__tasks
 * `tasks`.  False: there is none, or it is too old.
 */
bool tdt__history_ended(void *tasks, uint64_t id, struct tdt_registry_holder *ended);

/* Add the orphaned locks that were found, as far as there is memory. */
void tdt__history_orphans(struct tdt__tree_reader *reader, struct tdt__findings *findings,
			  struct tdt__orphans *orphans);
