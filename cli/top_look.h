/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A look at the target, for one round of tdt top.  It runs in a child process (apart.h), which ends
 * after it: so a target that is made to do harm can make a round fail, and nothing else.
 */

#include "cli/tdt.h"
#include "cli/top_round.h"

struct top_look {
	const struct options *options; /* the target is a number */
	struct top_question question;
	const struct top_round *last; /* NULL: there was none */
	struct top_round *round;      /* all zero at first; the parent sees it, too */
};

/* Fill in the round.  What is wrong is written to `out`.  Returns an exit status. */
int top_look(FILE *out, void *look);

/*
 * Have the tasks of the target watched until the process ends: for apart_start(), with the struct
 * outside_options.  Returns if that is refused, and has then said why.
 */
int top_watch(FILE *out, void *arg);

struct top_places;

/*
 * Find the place of each task, count those that wait there, and look up the names of the places
 * with the most tasks, unless the last round had them.  NULL: no memory.
 */
struct top_places *top_places_find(const struct top_look *look, const struct outside *outside,
				   const struct tdt_snapshot *snapshot);
void top_places_free(struct top_places *places); /* NULL does nothing */

/* The text of the place of a task in that group of the snapshot; "": it was not named. */
const char *top_places_text(const struct top_places *places, size_t group,
			    const struct tdt_task_info *task);
