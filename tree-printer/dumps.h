/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_PRINTER_DUMPS_H
#define TDT_TREE_PRINTER_DUMPS_H

/*
 * The forms of a snapshot.  dump.c has looked at it: it is whole, and the names in its trees have been looked up, as
 * far as there was memory.  All are linear in the number of tasks, and need memory for one group at a time, beside the
 * names of tasks and what is known of frames.
 */

#include "names.h"
#include "printer.h"

struct tdt__dump {
	const struct tdt_snapshot *snapshot;
	const struct tdt__names *names; /* text only; NULL: there was no memory for them */
	const struct tdt_print_options *options;
	size_t max_ids; /* 1 at least */
	uint64_t unnamed; /* frames that were not named in time */
};

/* tdt_snapshot_print(), with names as far as they are found by `deadline` (CLOCK_MONOTONIC, in nanoseconds). */
int tdt__snapshot_print_by(const struct tdt_snapshot *snapshot, FILE *out, const struct tdt_dump_options *options,
			   uint64_t deadline);

/* A task of a group, with zeros for what an older header had no field for. */
struct tdt_trace_info tdt__dump_task(const struct tdt_snapshot_group *group, size_t i);

/*
 * They return 0 or -ENOMEM; errors in writing are told by `out`.  Text and folded stacks go on after the former, and
 * text marks what is missing.
 */
int tdt__dump_text(struct tdt__out *out, const struct tdt__dump *dump);
int tdt__dump_json(struct tdt__out *out, const struct tdt__dump *dump);
int tdt__dump_folded(struct tdt__out *out, const struct tdt__dump *dump);

/*
 * The lines above the tree of a group of several tasks: how many they are, for how long, some of them by name, and what
 * they wait for.
 */
void tdt__group_lines(struct tdt__string *string, const struct tdt_snapshot_group *group, const struct tdt__dump *dump);

/* "1 task", "10,000 tasks". */
void tdt__count_tasks(struct tdt__string *string, uint64_t n);
/* "10,000" */
void tdt__count(struct tdt__string *string, uint64_t n);

#endif
