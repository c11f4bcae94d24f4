/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_SUMMARY_H
#define TDT_CLI_SUMMARY_H

/* What tdt print does with recordings of the flight recorder. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/program.h"

struct summary_command {
	const char *path;     /* a file or a directory */
	const char *perfetto; /* the file for Perfetto's form, "-": standard output; NULL: print the
				 summary */
	const struct tdt_print_options *print;
	bool full;
	size_t rows;          /* 0: as many as suit the form */
	uint64_t since;       /* ns; 0: everything */
};

/* Returns an exit status. */
int summary_run(const struct program *program, const struct summary_command *command);

#endif
