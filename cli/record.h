/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_RECORD_H
#define TDT_CLI_RECORD_H

/* The recording that tdt record has taken, and how it is written. */

#include <stdbool.h>
#include <stddef.h>

#include "cli/tdt.h"

struct tdt__modules;
struct tdt__recording;

struct taken {
	void *block; /* the copy, which is a whole recording */
	size_t size;
	struct tdt__recording *recording;
	/* By which its addresses are named.  Nobody else has the table. */
	struct tdt__modules *modules;
};

/*
 * Write it to the file at `path`, in the form that the name of the file ends with: .pftrace,
 * .pftrace.gz, .json (the summary), or anything else: the recording itself.  Without `names`, no
 * file of a module is opened.  Returns PROGRAM_GOES_ON or TDT_TROUBLE.
 */
int write_taken(const struct taken *taken, const struct outside_options *options, const char *path,
		bool names);

/* Print the summary to standard output.  Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
int sum_up_taken(const struct taken *taken, const struct outside_options *options, bool names);

#endif
