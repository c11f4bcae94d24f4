/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_DUMPED_H
#define TDT_TESTS_DUMPED_H

/* Snapshots made by hand, to be printed. */

#include <stdbool.h>

#include <tdt/dump.h>

#include "lib/printed.h"

/* A task that waits in one leaf; and one of which no leaf is known. */
#define TASK(...) { .size = sizeof(struct tdt_task_info), .leaves = 1, __VA_ARGS__ }
#define BARE(...) { .size = sizeof(struct tdt_task_info), __VA_ARGS__ }
#define DUMP(...)                                                                                  \
	(&(struct tdt_dump_options){ .size = sizeof(struct tdt_dump_options), __VA_ARGS__ })

enum {
	DUMPED_GROUPS = 16,
	DUMPED_CYCLES = 8
};

struct dumped {
	struct tdt_snapshot snapshot;
	struct tdt_snapshot_group groups[DUMPED_GROUPS];
	const struct tdt_snapshot_group *group_list[DUMPED_GROUPS];
	struct tdt_snapshot_cycle cycles[DUMPED_CYCLES];
	const struct tdt_snapshot_cycle *cycle_list[DUMPED_CYCLES];
};

/* An empty one, for dumped_free(). */
struct dumped *dumped_new(void);
void dumped_free(struct dumped *dumped);

/* A group of the `n` tasks, which must live as long; `tree` as for grow(), NULL: none. */
void dumped_group(struct dumped *dumped, enum tdt_answer answer, const char *tree,
		  const struct tdt_task_info *tasks, size_t n);

/* A ring of these tasks. */
void dumped_cycle(struct dumped *dumped, bool deadlock, const struct tdt_task_info *tasks,
		  size_t n);

/* What is printed, for the caller to free. */
char *dumped_text(const struct tdt_snapshot *snapshot, const struct tdt_dump_options *options);

/* Of a dump, and it is freed. */
void dumped_expect(struct dumped *dumped, const struct tdt_dump_options *options,
		   const char *expected);

/*
 * One of all kinds: a deadlock of two, a ring, a group of several, one that runs, one as last seen,
 * one silent.
 */
struct dumped *dumped_everything(void);

#endif
