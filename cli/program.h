/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_PROGRAM_H
#define TDT_CLI_PROGRAM_H

/*
 * The parts that all programs share: options, messages, how they open files, and exit statuses.
 *
 * Each program reads its command line with getopt_long().  Its table of options lists OPTION_FORMAT
 * (if the program prints in several forms), then the program's own options, then OPTIONS_OF_ALL.
 * The program handles its own options, and passes each other result of getopt_long() to
 * program_option().  Nothing here exits, so that a test can run a program as a function.
 */

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/dump.h>

enum {
	PROGRAM_GOES_ON = -1, /* not an exit status: the program has not ended yet */
	EXIT_BAD_INPUT = 1,   /* or the output failed */
	EXIT_BAD_USAGE = 2
};

struct program {
	const char *name; /* each message begins with it */
	const char *help; /* the text that --help prints */
	/* The words that --format takes, in the order of enum tdt_print_format, then NULL. */
	const char *const *forms;
};

/* Results of getopt_long(), beside letters. */
enum { OPTION_ADDRESSES = 128, OPTION_FULL, OPTION_FULL_PATHS, OPTION_PLUMBING };

#define OPTION_OF_ADDRESSES { "addresses", no_argument, NULL, OPTION_ADDRESSES }
#define OPTIONS_OF_FRAMES					\
	{ "full", no_argument, NULL, OPTION_FULL },		\
	{ "full-paths", no_argument, NULL, OPTION_FULL_PATHS },	\
	{ "plumbing", no_argument, NULL, OPTION_PLUMBING }
#define OPTION_FORMAT { "format", required_argument, NULL, 'f' }
#define OPTIONS_OF_ALL				\
	{ "utf8", no_argument, NULL, 'u' },	\
	{ "ascii", no_argument, NULL, 'A' },	\
	{ "color", required_argument, NULL, 'c' }, \
	{ "help", no_argument, NULL, 'h' },	\
	{ "version", no_argument, NULL, 'v' },	\
	{ NULL, 0, NULL, 0 }

/*
 * Handle a result of getopt_long() that is not an option of the program's own: a shared option,
 * which is set in `print`, or an unknown one.  `value` is the option's argument (optarg).  Returns
 * PROGRAM_GOES_ON or an exit status.
 */
int program_option(const struct program *program, struct tdt_print_options *print, int option,
		   const char *value);

/* Read a whole decimal number.  False: it is none, or too large. */
bool program_number(const char *text, uint64_t *number);

/* The index of `value` in `words`, behind which NULL stands; -1: it is not there. */
int program_word(const char *const *words, const char *value);

/*
 * Set the bits by the indexes in `words` of the words in `value`, between which commas stand.
 * False: one of them is not there.
 */
bool program_words(const char *const *words, const char *value, unsigned *bits);

/* Report wrong usage: `what`, and `value` behind it.  Returns EXIT_BAD_USAGE. */
int program_bad_usage(const struct program *program, const char *what, const char *value);

/*
 * Open the file `*name` for reading.  "-" is standard input, and `*name` becomes its name in
 * messages.  NULL: the file can't be opened, which has been reported.  program_close() closes it.
 */
FILE *program_open(const struct program *program, const char **name);
void program_close(FILE *file);

/*
 * Report that the file `name` is damaged in line `line` and column `column` (negative: unknown).
 * `message` may quote the file, which may hold anything: only printable characters of ASCII reach
 * the terminal.  Returns EXIT_BAD_INPUT.
 */
int program_input_failed(const struct program *program, const char *name, unsigned long line,
			 long column, const char *message);

/*
 * Report that standard output failed with `error`, a positive errno.  A reader that has gone away,
 * as `head` does, needs no message.  Returns EXIT_BAD_INPUT.
 */
int program_output_failed(const struct program *program, int error);

#endif
