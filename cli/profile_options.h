/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_PROFILE_OPTIONS_H
#define TDT_CLI_PROFILE_OPTIONS_H

/* The options of tdt profile. */

#include "cli/tdt.h"

struct profile_command {
	struct outside_options outside;
	const char *out; /* the file; NULL: standard output */
	uint64_t duration;
	double hz;
	unsigned states; /* bits by enum tdt__profile_state; 0: all */
	size_t rows;
	uint32_t max_requests; /* 0: make none */
	bool formed, no_symbols;
};

/* Read the options.  Returns PROGRAM_GOES_ON, or the exit status. */
int profile_options(struct profile_command *command, int argc, char **argv);

#endif
