/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_HELP_H
#define DEMO_HELP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Read the command line of a demo whose only option is --help, which prints `help`.  Returns -1 if
 * the demo is to run, otherwise the exit status of the program.
 */
static inline int read_options(int argc, char **argv, const char *help)
{
	if (argc == 1)
		return -1;
	if (argc == 2 && strcmp(argv[1], "--help") == 0) {
		fputs(help, stdout);
		return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
	}
	fputs(help, stderr);
	return 2;
}

#endif
