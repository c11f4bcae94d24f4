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
