// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt-tree: print traces and dumps that were saved as JSON, in any of the forms. */

#include <config.h>

#include <errno.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/dump.h>

#include "cli/program.h"
#include "cli/read_json.h"

static char tree_name[] = "tdt-tree";

static const struct program tree_program = {
	.name = tree_name,
	.forms = (const char *const[]){ "text", "json", "folded", NULL },
	.help =
		"Usage: tdt-tree [OPTION]... [FILE]\n"
		"Print traces of async tasks, and dumps of many, which the tdt library wrote "
		"as JSON to FILE (default, or -:\n"
		"standard input).\n"
		"\n"
		"  --format=FORM    text (the default), json, or folded: stacks for flame graphs\n"
		"  --addresses      symbol+0x1f, as tracers print it, instead of the place in "
		"the source\n"
		"  --full-paths     the source's whole path, not the part below the build's "
		"directory\n"
		"  --plumbing       also the frames of tdt itself\n"
		"  --depth=N        at most N levels of frames; what is cut is marked\n"
		"  --utf8, --ascii  the lines of the tree (default: as the locale is)\n"
		"  --color=WHEN     auto (the default: on a terminal), always or never\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0; 1 if FILE is damaged (what stands before is printed) or the "
		"output fails; 2 for a wrong\n"
		"option.\n",
};

struct tree_command {
	struct tdt_print_options print;
	const char *file;
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

/* Returns PROGRAM_GOES_ON or an exit status. */
static int parse_option(struct tree_command *command, int option, const char *value)
{
	switch (option) {
	case 'd':
		if (!parse_depth(value, &command->print.max_depth))
			return program_bad_usage(&tree_program, "not a depth: ", value);
		return PROGRAM_GOES_ON;
	case 'a':
		command->print.addresses = 1;
		return PROGRAM_GOES_ON;
	case 'p':
		command->print.full_paths = 1;
		return PROGRAM_GOES_ON;
	case 'P':
		command->print.plumbing = 1;
		return PROGRAM_GOES_ON;
	default:
		return program_option(&tree_program, &command->print, option, value);
	}
}

/* Returns PROGRAM_GOES_ON or an exit status. */
static int parse_tree_options(struct tree_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		OPTION_FORMAT,
		{ "addresses", no_argument, NULL, 'a' },
		{ "full-paths", no_argument, NULL, 'p' },
		{ "plumbing", no_argument, NULL, 'P' },
		{ "depth", required_argument, NULL, 'd' },
		OPTIONS_OF_ALL,
	};
	int option, status;

	argv[0] = tree_name; /* getopt_long() begins its messages with it */
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = parse_option(command, option, optarg);
		if (status != PROGRAM_GOES_ON)
			return status;
	}
	if (argc - optind > 1)
		return program_bad_usage(&tree_program, "more than one file: ", argv[optind + 1]);
	if (optind < argc)
		command->file = argv[optind];
	return PROGRAM_GOES_ON;
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

static int print_all(FILE *file, const char *name, const struct tdt_print_options *options)
{
	struct reader reader = { .file = file };
	struct tdt_trace *trace;
	struct dump *dump;
	int result;

	while ((result = reader_next_of_both(&reader, &trace, &dump)) > 0) {
		int err = print_one(trace, dump, options);

		if (err != 0)
			return program_output_failed(&tree_program, -err);
	}
	return result == 0 ? EXIT_SUCCESS
			   : program_input_failed(&tree_program, name, reader.line,
						  (long)reader.column, reader.message);
}

int main(int argc, char **argv)
{
	struct tree_command command = { .print.size = sizeof(command.print), .file = "-" };
	FILE *file;
	int status;

	setlocale(LC_ALL, "");
	status = parse_tree_options(&command, argc, argv);
	if (status != PROGRAM_GOES_ON)
		return status;
	file = program_open(&tree_program, &command.file);
	if (file == NULL)
		return EXIT_BAD_INPUT;
	status = print_all(file, command.file, &command.print);
	program_close(file);
	return status;
}
