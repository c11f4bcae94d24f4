/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The forms in which tdt profile prints what it has found. */

#include "cli/tdt.h"
#include "reader/profile.h"
#include "reader/profile_places.h"
#include "reader/profile_recorded.h"
#include "tree-printer/fold.h"
#include "tree-printer/frames.h"
#include "tree-printer/strings.h"

struct profile_result {
	const struct outside *outside;
	struct tdt__profile *profile;
	const struct tdt__profile_places *places;
	const struct tdt_print_options *print; /* without TDT_PRINT_AUTO */
	unsigned states;   /* which ones are printed: bits by enum tdt__profile_state */
	size_t rows;       /* of the table, at most */
	double hz;
	double ns;         /* for which the looks stand: how long the profile took */
	uint64_t real;     /* when it began, ns of CLOCK_REALTIME */
	uint64_t watch_ns; /* how often trees were made; 0: the process was not watched */
	bool ended;        /* the process did, meanwhile */
	const struct tdt__profile_times *times; /* from a recording; NULL: there is none */
};

/* An apart_fn: profile the target of the options, and print.  wait_begin() was called. */
int profile_target(FILE *out, void *options);

/* The word for what a task in this state waits for; NULL: unknown, or the task does not wait. */
const char *profile_kind(enum tdt__profile_state state, enum tdt_wait_kind kind);

/* Whether this place is printed. */
bool profile_has_place(const struct profile_result *result, const struct tdt__profile_place *place);

/* The time of the states that are printed, ns of all tasks together. */
double profile_total(const struct profile_result *result);

/* The forms.  Errors are kept in `out`; of pprof, the result is 0 or a negative errno. */
void profile_text(struct tdt__out *out, const struct profile_result *result);
void profile_json(struct tdt__out *out, const struct profile_result *result);
void profile_folded(struct tdt__out *out, const struct profile_result *result);
int profile_pprof(FILE *file, const struct profile_result *result);

/* The result for one tree. */
struct profile_tree {
	bool *shown; /* of each node, by its id; NULL: not found out yet */
	struct tdt__folded *folded;
};

struct profile_shown {
	const struct profile_result *result;
	bool folds; /* calls in libraries are folded, as in the text form of a dump */
	struct tdt__frames frames;
	struct profile_tree *tree; /* by the tree's number */
};

/* Returns 0 or -ENOMEM.  The caller frees it in both cases. */
int profile_shown_init(struct profile_shown *shown, const struct profile_result *result,
		       bool folds);
void profile_shown_fini(struct profile_shown *shown);

/*
 * Set `*tree` to what is shown of the tree of a place whose leaf is known.  Returns 0 or -ENOMEM.
 */
int profile_shown_tree(struct profile_shown *shown, const struct tdt__profile_place *place,
		       const struct profile_tree **tree);

/* The node, or the nearest one above it that is shown; NULL: there is none. */
const struct tdt_node *profile_next_shown(const struct profile_tree *tree,
					  const struct tdt_node *node);
