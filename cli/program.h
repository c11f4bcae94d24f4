/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The parts that all programs share: messages, how they open files, and exit statuses. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
	PROGRAM_GOES_ON = -1, /* not an exit status: the program has not ended yet */
	EXIT_BAD_INPUT = 1,   /* or the output failed */
	EXIT_BAD_USAGE = 2
};

extern const char *program_name; /* each message begins with it: "tdt", unless main() changes it */

/* Read a whole decimal number.  False: it is none, or too large. */
bool program_number(const char *text, uint64_t *number);

/* Split "[::1]:4318" or "localhost:4318" in place.  `*port` stays if there is none. */
char *program_split_host(char *text, const char **port);

/* Report wrong usage: `what`, and `value` behind it; and exit with EXIT_BAD_USAGE. */
_Noreturn void bad_usage(const char *what, const char *value);

/*
 * Open the file `*name` for reading.  "-" is standard input, and `*name` becomes its name in
 * messages.  NULL: the file can't be opened, which has been reported.  program_close() closes it.
 */
FILE *program_open(const char **name);
void program_close(FILE *file);

/*
 * Report that the file `name` is damaged in line `line` and column `column` (negative: unknown).
 * `message` may quote the file, which may hold anything: only printable characters of ASCII reach
 * the terminal.  Returns EXIT_BAD_INPUT.
 */
int program_input_failed(const char *name, unsigned long line, long column, const char *message);

/*
 * Report that standard output failed with `error`, a positive errno.  A reader that has gone away,
 * as `head` does, needs no message.  Returns EXIT_BAD_INPUT.
 */
int program_output_failed(int error);

/* The exit status of a program that has printed all that it was asked for. */
int program_end_output(void);
