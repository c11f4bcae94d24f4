/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The trees of a target's tasks, by requests or by reading, for tdt bt and tdt diff. */

#include "cli/tdt.h"
#include "reader/dump.h"

struct answer {
	struct tdt__tasks tasks;
	struct tdt__findings *findings;
	struct tdt__tasks before; /* looked at before the requests: `findings` has their names */
	bool ended; /* the process has, meanwhile: so trees may be missing */
};

/*
 * Ask one copy of the library in the target.  Returns PROGRAM_GOES_ON, and the caller calls
 * answer_fini() before outside_close(); or TDT_TROUBLE.
 */
int answer_take(struct answer *answer, const struct options *options,
		const struct tdt__task_choice *choice, struct outside *outside, size_t registry);
void answer_fini(struct answer *answer);

/* Read the ids of tasks from arguments.  The caller frees `choice->ids`, which is not const to it.
 */
void read_choice(struct tdt__task_choice *choice, int argc, char **argv);

/*
 * Choose those of the tasks that belong to the trace with this id, instead of what `choice` had,
 * which is freed.  False: no memory.
 */
bool choose_trace(struct tdt__task_choice *choice, const struct tdt__tasks *tasks,
		  const char *trace);
