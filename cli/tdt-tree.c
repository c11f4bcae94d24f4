// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt-tree: print traces and dumps that were saved as JSON, in any of the forms. */

#include <config.h>

#include <errno.h>
#include <getopt.h>
#include <locale.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/dump.h>

#include "cli/read_json.h"

enum {
	EXIT_BAD_INPUT = 1, /* or output */
	EXIT_BAD_USAGE = 2
};

static const char usage[] =
	"Usage: tdt-tree [OPTION]... [FILE]\n"
	"Print traces of async tasks, and dumps of many, which the tdt library wrote as JSON to FILE (default, or -:\n"
	"standard input).\n"
	"\n"
	"  --format=FORM    text (the default), json, or folded: stacks for flame graphs\n"
	"  --addresses      symbol+0x1f, as tracers print it, instead of the place in the source\n"
	"  --full-paths     the source's whole path, not the part below the build's directory\n"
	"  --plumbing       also the frames of tdt itself\n"
	"  --depth=N        at most N levels of frames; what is cut is marked\n"
	"  --utf8, --ascii  the lines of the tree (default: as the locale is)\n"
	"  --color=WHEN     auto (the default: on a terminal), always or never\n"
	"  --help, --version\n"
	"\n"
	"Exit status: 0; 1 if FILE is damaged (what stands before is printed) or the output fails; 2 for a wrong\n"
	"option.\n";

struct command {
	struct tdt_print_options print;
	const char *file;
};

static int bad_usage(const char *what, const char *value)
{
	fprintf(stderr, "tdt-tree: %s%s\nTry 'tdt-tree --help'.\n", what, value);
	return EXIT_BAD_USAGE;
}

/* The index of `value` in the NULL-terminated `words`; -1: not there. */
static int find_word(const char *const *words, const char *value)
{
	for (int i = 0; words[i] != NULL; i++)
		if (strcmp(words[i], value) == 0)
			return i;
	return -1;
}

static bool parse_depth(const char *text, uint32_t *depth)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	*depth = (uint32_t)value;
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && value > 0 && value <= UINT32_MAX;
}

/* 0; an exit status; or -1: done, and all is well. */
static int parse_option(struct command *command, int option, const char *value)
{
	static const char *const forms[] = { "text", "json", "folded", NULL };
	static const char *const whens[] = { "auto", "never", "always", NULL };
	int word;

	switch (option) {
	case 'f':
		word = find_word(forms, value);
		command->print.format = (enum tdt_print_format)word;
		return word >= 0 ? 0 : bad_usage("unknown form: ", value);
	case 'c':
		word = find_word(whens, value);
		command->print.color = (enum tdt_print_choice)word;
		return word >= 0 ? 0 : bad_usage("--color is auto, always or never, not ", value);
	case 'd':
		return parse_depth(value, &command->print.max_depth) ? 0 : bad_usage("not a depth: ", value);
	case 'a':
		command->print.addresses = 1;
		return 0;
	case 'p':
		command->print.full_paths = 1;
		return 0;
	case 'P':
		command->print.plumbing = 1;
		return 0;
	case 'u':
		command->print.utf8 = TDT_PRINT_YES;
		return 0;
	case 'A':
		command->print.utf8 = TDT_PRINT_NO;
		return 0;
	case 'h':
		fputs(usage, stdout);
		return -1;
	case 'v':
		puts("tdt-tree (" PACKAGE_STRING ")");
		return -1;
	default: /* getopt has told */
		return bad_usage("wrong option", "");
	}
}

static int parse(struct command *command, int argc, char **argv)
{
	static const struct option options[] = {
		{ "format", required_argument, NULL, 'f' },
		{ "addresses", no_argument, NULL, 'a' },
		{ "full-paths", no_argument, NULL, 'p' },
		{ "plumbing", no_argument, NULL, 'P' },
		{ "depth", required_argument, NULL, 'd' },
		{ "utf8", no_argument, NULL, 'u' },
		{ "ascii", no_argument, NULL, 'A' },
		{ "color", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	int option, status;

	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		status = parse_option(command, option, optarg);
		if (status != 0)
			return status;
	}
	if (argc - optind > 1)
		return bad_usage("more than one file: ", argv[optind + 1]);
	if (optind < argc && strcmp(argv[optind], "-") != 0)
		command->file = argv[optind];
	return 0;
}

/* A reader that went away, as `head` does, needs no message. */
static int output_failed(int error)
{
	if (error != EPIPE)
		fprintf(stderr, "tdt-tree: standard output: %s\n", strerror(error));
	return EXIT_BAD_INPUT;
}

/* The message may quote the file, which may hold anything: nothing of it must reach a terminal as it is. */
static int input_failed(const char *name, struct reader *reader)
{
	for (char *at = reader->message; *at != '\0'; at++)
		if (*at < ' ' || *at > '~')
			*at = '?';
	fprintf(stderr, "tdt-tree: %s:%lu:%lu: %s\n", name, reader->line, reader->column, reader->message);
	return EXIT_BAD_INPUT;
}

/* Whichever of the two there is; it is freed. */
static int print_one(struct tdt_trace *trace, struct dump *dump, const struct tdt_print_options *options)
{
	const struct tdt_dump_options dump_options = { .size = sizeof(dump_options), .print = options };
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
			return output_failed(-err);
	}
	return result == 0 ? EXIT_SUCCESS : input_failed(name, &reader);
}

int main(int argc, char **argv)
{
	struct command command = { .print.size = sizeof(command.print) };
	FILE *file = stdin;
	int status;

	setlocale(LC_ALL, "");
	status = parse(&command, argc, argv);
	if (status == -1)
		return fflush(stdout) == 0 ? EXIT_SUCCESS : output_failed(errno);
	if (status != 0)
		return status;
	if (command.file != NULL)
		file = fopen(command.file, "re");
	if (file == NULL) {
		fprintf(stderr, "tdt-tree: %s: %s\n", command.file, strerror(errno));
		return EXIT_BAD_INPUT;
	}
	status = print_all(file, command.file == NULL ? "standard input" : command.file, &command.print);
	if (file != stdin)
		fclose(file);
	return status;
}
