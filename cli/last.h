/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The common beginning of commands: the target is opened in a child process with limits.  It may
 * also be the tasks of a recording as they were when it ended, for tdt ps and tdt bt (--dir).
 */

#include "cli/recordings.h"
#include "cli/tdt.h"
#include "reader/last_states.h"
#include "tree-printer/json_writer.h"

struct last {
	struct recording_read read;
	struct tdt__last_states states;
};

/* Write "process 4711 "bank", recorded until 2026-11-22 20:53:09.204". */
void last_title(struct tdt__string *string, const struct last *last);

/* If states of tasks are unknown, write a line that says why. */
void last_missing(struct tdt__string *string, const struct last *last);

/* Write the member that says which recording it is. */
void last_json(struct tdt__json *json, const struct last *last);

struct work {
	struct options *options;
	void *command; /* for the functions, which return exit statuses */
	int (*registry)(void *command, struct outside *outside, size_t registry);
	int (*recording)(void *command, struct last *last); /* of --dir; NULL: it takes none */
	bool again; /* see outside_apart() */
};

/* Do the work for each copy of the library in the target.  Returns the worst exit status. */
int work_apart(struct work *work);

/* The same for each of the targets that were given, with a heading if they are several. */
int work_on_each(struct work *work);
