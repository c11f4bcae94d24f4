// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt print: print traces and dumps that were saved as JSON, in any of the forms; and the summary
 * of a recording of the flight recorder.  Before there was tdt, this was a program of its own,
 * tdt-tree.  A link of that name still does the same.
 */

#include <config.h>

#include "cli/print.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/dump.h>

#include "cli/read_json.h"
#include "cli/summary.h"
#include "tree-printer/summaries.h"

static const char *const print_forms[] = { "text", "json", "folded", NULL };

#define HELP_OF_PRINT(use)                                                                         \
	"Usage: " use " [OPTION]... [FILE]\n"                                                      \
	"       " use " --summary [OPTION]... RECORDING\n"                                         \
	"       " use " --perfetto=OUT RECORDING\n"                                                \
	"Print traces of async tasks, and dumps of many, which the tdt library wrote "             \
	"as JSON to FILE (default, or -:\n"                                                        \
	"standard input).\n"                                                                       \
	"\n"                                                                                       \
	"With --summary: say what happened last, by a RECORDING of the flight recorder: a "        \
	"file, or a directory with files\n"                                                        \
	"(TDT_RECORD_DIR).  Of several files, the newest one of a process that was killed "        \
	"is read.  With --perfetto: write it to OUT as a trace for ui.perfetto.dev, "              \
	"compressed if OUT ends in .gz.\n"                                                         \
	"\n"                                                                                       \
	"  --format=FORM    text (the default), json, or folded: stacks for flame graphs\n"        \
	"  --json           the same as --format=json\n"                                           \
	"  --addresses      symbol+0x1f, as tracers print it, instead of the place in "            \
	"the source\n"                                                                             \
	"  --full-paths     the source's whole path, not the part below the program's "            \
	"directory\n"                                                                              \
	"  --plumbing       also the frames of tdt itself\n"                                       \
	"  --depth=N        at most N levels of frames; what is cut is marked\n"                   \
	"  --utf8, --ascii  the lines of the tree (default: as the locale is)\n"                   \
	"  --color=WHEN     auto (the default: on a terminal), always or never\n"                  \
	"  --full           also the calls in libraries; with --summary: long lists, whole "       \
	"stacks, and all rings\n"                                                                  \
	"  --rows=N         with --summary: at most N entries of each list\n"                      \
	"  --since=SECONDS  with --summary: only what happened in the last SECONDS\n"              \
	"  --help, --version\n"                                                                    \
	"\n"

static const struct program print_program = {
	.name = "tdt",
	.forms = print_forms,
	.help = HELP_OF_PRINT("tdt print")
		"Exit status: 0; 2 if FILE is damaged (what stands before is printed), the output "
		"fails, or an option is wrong.\n",
};

static const struct program tree_program = {
	.name = "tdt-tree",
	.forms = print_forms,
	.help = HELP_OF_PRINT("tdt-tree")
		"Exit status: 0; 1 if FILE is damaged (what stands before is printed) or the "
		"output fails; 2 for a wrong\n"
		"option.\n",
};

struct print_command {
	const struct program *program;
	struct tdt_print_options print;
	const char *file;
	bool summarize; /* or write a trace */
	struct summary_command summary;
};

static bool parse_depth(const char *text, uint32_t *depth)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	*depth = (uint32_t)value;
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value > 0 &&
	       value <= UINT32_MAX;
}

/* A number of seconds, with digits behind a point perhaps, as nanoseconds.  False: it is none. */
static bool parse_seconds(const char *text, uint64_t *ns)
{
	uint64_t value = 0, unit = 1000000000;
	bool point = false;

	if (text[0] < '0' || text[0] > '9')
		return false;
	for (; *text != '\0'; text++) {
		if (*text == '.' && !point) {
			point = true;
		} else if (*text < '0' || *text > '9' || value >= UINT32_MAX) {
			return false;
		} else if (!point || unit > 1) {
			value = value * 10 + (uint64_t)(*text - '0');
			unit /= point ? 10 : 1;
		}
	}
	*ns = value * unit;
	return *ns != 0;
}

/* An option of --summary.  Returns PROGRAM_GOES_ON or an exit status. */
static int parse_summary_option(struct print_command *command, int option, const char *value)
{
	uint32_t rows;

	switch (option) {
	case OPTION_FULL:
		command->summary.full = true;
		command->print.full = 1;
		return PROGRAM_GOES_ON;
	case 'R':
		if (!parse_depth(value, &rows) || rows > TDT__SUMMARY_ROWS_MAX)
			return program_bad_usage(command->program, "not a number of rows: ", value);
		command->summary.rows = rows;
		return PROGRAM_GOES_ON;
	case 'n':
		if (!parse_seconds(value, &command->summary.since))
			return program_bad_usage(command->program, "not a number of seconds: ",
						 value);
		return PROGRAM_GOES_ON;
	case 't':
		command->summary.perfetto = value;
		command->summarize = true;
		return PROGRAM_GOES_ON;
	default:
		command->summarize = true;
		return PROGRAM_GOES_ON;
	}
}

/* Returns PROGRAM_GOES_ON or an exit status. */
static int parse_print_option(struct print_command *command, int option, const char *value)
{
	switch (option) {
	case 'j':
		command->print.format = TDT_PRINT_JSON;
		return PROGRAM_GOES_ON;
	case 'd':
		if (!parse_depth(value, &command->print.max_depth))
			return program_bad_usage(command->program, "not a depth: ", value);
		return PROGRAM_GOES_ON;
	case 's':
	case 't':
	case OPTION_FULL:
	case 'R':
	case 'n':
		return parse_summary_option(command, option, value);
	default:
		return program_option(command->program, &command->print, option, value);
	}
}

/* Whether the options belong together.  Returns PROGRAM_GOES_ON or an exit status. */
static int check_command(struct print_command *command)
{
	const struct summary_command *summary = &command->summary;

	if ((summary->full && summary->perfetto != NULL) ||
	    ((!command->summarize || summary->perfetto != NULL) &&
	     (summary->rows != 0 || summary->since != 0)))
		return program_bad_usage(command->program, "this option needs --summary", "");
	if (!command->summarize)
		return PROGRAM_GOES_ON;
	if (strcmp(command->file, "-") == 0)
		return program_bad_usage(command->program, "no recording is named", "");
	if (command->print.format == TDT_PRINT_FOLDED)
		return program_bad_usage(command->program, "--summary has no form ", "folded");
	return PROGRAM_GOES_ON;
}

/* Returns PROGRAM_GOES_ON or an exit status. */
static int parse_print_options(struct print_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		OPTION_FORMAT,
		{ "json", no_argument, NULL, 'j' },
		OPTION_OF_ADDRESSES,
		OPTIONS_OF_FRAMES,
		{ "depth", required_argument, NULL, 'd' },
		{ "summary", no_argument, NULL, 's' },
		{ "perfetto", required_argument, NULL, 't' },
		{ "rows", required_argument, NULL, 'R' },
		{ "since", required_argument, NULL, 'n' },
		OPTIONS_OF_ALL,
	};
	int option, status;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = parse_print_option(command, option, optarg);
		if (status != PROGRAM_GOES_ON)
			return status;
	}
	if (argc - optind > 1)
		return program_bad_usage(command->program, "more than one file: ",
					 argv[optind + 1]);
	if (optind < argc)
		command->file = argv[optind];
	return check_command(command);
}

/* Print the trace or the dump, whichever is not NULL, and free it. */
static int print_one(struct tdt_trace *trace, struct dump *dump,
		     const struct tdt_print_options *options)
{
	const struct tdt_dump_options dump_options = { .size = sizeof(dump_options),
						       .print = options };
	int err = trace != NULL ? tdt_trace_print_with(trace, stdout, options)
				: tdt_snapshot_print(dump_snapshot(dump), stdout, &dump_options);

	tdt_trace_free(trace);
	dump_free(dump);
	return err;
}

static int print_all(const struct print_command *command, FILE *file)
{
	struct reader reader = { .file = file };
	struct tdt_trace *trace;
	struct dump *dump;
	int result;

	while ((result = reader_next_of_both(&reader, &trace, &dump)) > 0) {
		int err = print_one(trace, dump, &command->print);

		if (err != 0)
			return program_output_failed(command->program, -err);
	}
	return result == 0 ? EXIT_SUCCESS
			   : program_input_failed(command->program, command->file, reader.line,
						  (long)reader.column, reader.message);
}

static int print_saved(struct print_command *command)
{
	FILE *file = program_open(command->program, &command->file);
	int status;

	if (file == NULL)
		return EXIT_BAD_INPUT;
	status = print_all(command, file);
	program_close(file);
	return status;
}

static int run_print(const struct program *program, int argc, char **argv)
{
	struct print_command command = { .program = program,
					 .print.size = sizeof(command.print),
					 .file = "-" };
	int status = parse_print_options(&command, argc, argv);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (!command.summarize)
		return print_saved(&command);
	command.summary.path = command.file;
	command.summary.print = &command.print;
	return summary_run(program, &command.summary);
}

int command_print(int argc, char **argv)
{
	int status = run_print(&print_program, argc, argv);

	return status == EXIT_BAD_INPUT ? EXIT_BAD_USAGE : status;
}

int print_as_tdt_tree(int argc, char **argv)
{
	static char name[] = "tdt-tree";

	argv[0] = name; /* getopt_long() begins its messages with it */
	return run_print(&tree_program, argc, argv);
}
