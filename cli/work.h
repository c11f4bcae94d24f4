/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The common beginning of commands: the target is opened in a child process with limits. */

#include "cli/last.h"
#include "cli/tdt.h"

struct work {
	struct options *options;
	void *command; /* for the functions, which return exit statuses */
	int (*registry)(void *command, struct outside *outside, size_t registry);
	int (*recording)(void *command, struct last *last); /* of --dir; NULL: it takes none */
	bool again; /* see outside_apart() */
};

/* Do the work for each copy of the library in the target.  Returns the worst exit status. */
int work_apart(struct work *work);
