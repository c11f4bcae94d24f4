/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The forms of a snapshot.  dump.c has checked that the snapshot is whole, and has looked up the
 * names in its trees, as far as memory and time allowed.  Every form takes time linear in the
 * number of tasks.  It needs memory for one group at a time, for the names of tasks, and for the
 * texts of frames.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/dump.h>

#include "names.h"
#include "strings.h"

struct tdt__dump {
	const struct tdt_snapshot *snapshot;
	const struct tdt__names *names; /* for the text form; NULL: no memory for them */
	const struct tdt_print_options *options;
	size_t max_ids;   /* 1 or more */
	uint64_t unnamed; /* how many frames were not named in time */
};

/*
 * tdt_snapshot_print(), with the names that are found by `deadline` (CLOCK_MONOTONIC, in
 * nanoseconds).
 */
int tdt__snapshot_print_by(const struct tdt_snapshot *snapshot, FILE *out,
			   const struct tdt_dump_options *options, uint64_t deadline);

/*
 * Look up the names in the trees until `deadline`, and add to `*unnamed` how many frames have none.
 * Returns 0 or -ENOMEM: some trees have no names yet, which the forms find out.
 */
int tdt__snapshot_name(const struct tdt_snapshot *of, uint64_t deadline, uint64_t *unnamed);

/*
 * The forms.  Errors are kept in `out`.  Without memory for a part, text and folded stacks go on
 * with the next part, and text marks where a part is missing.
 */
void tdt__dump_text(struct tdt__out *out, const struct tdt__dump *dump);
void tdt__dump_json(struct tdt__out *out, const struct tdt__dump *dump);
void tdt__dump_folded(struct tdt__out *out, const struct tdt__dump *dump);

/* What stands above the groups of the text form: what is wrong. */
void tdt__dump_heading(struct tdt__out *out, const struct tdt__dump *dump);

/* The groups of the text form alone, without what the snapshot says of all of them. */
void tdt__dump_groups(struct tdt__out *out, const struct tdt__dump *dump);

/*
 * Add the lines above the tree of a group of several tasks: how many tasks they are, for how long
 * they have been in their state, some of them by name, and what they wait for.  `deadlock`: they
 * are in a deadlock.
 */
void tdt__group_lines(struct tdt__string *string, const struct tdt_snapshot_group *group,
		      bool deadlock, const struct tdt__dump *dump);

/* The same of any group, also of one task. */
void tdt__dump_group_head(struct tdt__string *string, const struct tdt_snapshot_group *group,
			  bool deadlock, const struct tdt__dump *dump);
