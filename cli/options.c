// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Reading command lines by the table of options: see options.h. */

#include <config.h>

#include "cli/options.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 80        /* of a command */
#define FIRST_ROW 1000     /* the result of getopt_long() for the first row */
#define HELP_COLUMNS 79
#define HELP_INDENT 25     /* of the descriptions of options */
#define COMMANDS_INDENT 15 /* of those of commands */

static bool is_row_of(const struct option_row *row, enum command_number command)
{
	return (row->commands & 1u << command) != 0;
}

/* Print words from column `at` on, in lines that begin at column `indent`. */
static void print_wrapped(const char *text, int at, int indent)
{
	while (*text != '\0') {
		int length = (int)strcspn(text, " \n");

		if (at > indent && at + 1 + length > HELP_COLUMNS) {
			printf("\n%*s", indent, "");
			at = indent;
		} else if (at > indent) {
			putchar(' ');
			at++;
		}
		printf("%.*s", length, text);
		at += length;
		text += length;
		for (; *text == ' ' || *text == '\n'; text++)
			if (*text == '\n') {
				putchar('\n');
				at = indent;
			}
	}
	putchar('\n');
}

/* Print from column `at` on, or in a new line if that is too far, at column `indent`. */
static void print_beside(const char *text, int at, int indent)
{
	if (at + 2 > indent) {
		putchar('\n');
		at = 0;
	}
	printf("%*s", indent - at, "");
	print_wrapped(text, indent, indent);
}

static void print_option_help(const struct option_row *row)
{
	int at = row->letter != 0 ? printf("  -%c, --%s", row->letter, row->name)
				  : printf("  --%s", row->name);

	if (row->argument != NULL)
		at += printf("=%s", row->argument);
	print_beside(row->help, at, HELP_INDENT);
}

static void print_commands(void)
{
	for (int i = 0; i < COMMANDS_OF_TDT; i++)
		print_beside(commands[i].brief, printf("  tdt %s", commands[i].name),
			     COMMANDS_INDENT);
	puts("\n'tdt COMMAND --help' explains a command.\n");
}

static void options_help(enum command_number number)
{
	const struct command *command = &commands[number];
	const char *at = command->usage, *end;

	for (; *at != '\0'; at = *end != '\0' ? end + 1 : end) {
		end = strchrnul(at, '\n');
		printf("%s%.*s\n", at == command->usage ? "Usage: " : "       ", (int)(end - at),
		       at);
	}
	print_wrapped(command->about, 0, 0);
	putchar('\n');
	if (number == COMMAND_TDT)
		print_commands();
	for (size_t i = 0; i < n_option_rows; i++)
		if (is_row_of(&option_rows[i], number))
			print_option_help(&option_rows[i]);
	putchar('\n');
	print_wrapped(command->status, printf("Exit status:"), 0);
}

/* Read a number with a unit of time, such as "10ms". */
static bool parse_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *unit;
		double ns;
	} units[] = { { "ns", 1 },    { "us", 1e3 },	{ "ms", 1e6 },
		      { "s", 1e9 },   { "m", 60e9 },	{ "h", 3600e9 } };
	char *end;
	double value;

	if (!isdigit((unsigned char)text[0]))
		return false;
	value = strtod(text, &end);
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (strcmp(end, units[i].unit) == 0 && value * units[i].ns < 1e18) {
			*ns = (uint64_t)(value * units[i].ns);
			return true;
		}
	return false;
}

void set_duration(uint64_t *ns, const char *text)
{
	if (!parse_duration(text, ns))
		bad_usage("not a time, as 10ms, 1.5s or 2m: ", text);
}

/* "text, json or folded" */
static void list_words(char *to, size_t size, const char *const *words)
{
	size_t at = 0;

	for (int i = 0; words[i] != NULL && at < size; i++)
		at += (size_t)snprintf(to + at, size - at, "%s%s",
				       i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ",
				       words[i]);
}

static _Noreturn void bad_value(const struct option_row *row, const char *value)
{
	char what[256], list[160];

	if (row->words != NULL) {
		list_words(list, sizeof list, row->words);
		snprintf(what, sizeof what, "--%s is %s, not ", row->name, list);
	} else if (row->kind != KIND_NUMBER && row->least <= 1) {
		snprintf(what, sizeof what, "--%s is a time, more than nothing%s, not ", row->name,
			 row->most != UINT64_MAX ? " and a day at most" : "");
	} else if (row->kind != KIND_NUMBER) {
		snprintf(what, sizeof what, "--%s is a time of %gs at least, not ", row->name,
			 (double)row->least / 1e9);
	} else if (row->most == UINT64_MAX) {
		snprintf(what, sizeof what, "--%s is a number, not ", row->name);
	} else {
		snprintf(what, sizeof what,
			 "--%s is a number from %" PRIu64 " to %" PRIu64 ", not ", row->name,
			 row->least, row->most);
	}
	bad_usage(what, value);
}

static void read_bounded(const struct option_row *row, uint64_t *to, const char *value)
{
	char seconds[64];
	bool is_number = true;

	snprintf(seconds, sizeof seconds, "%ss", value);
	if (row->kind == KIND_TIME)
		set_duration(to, value);
	else
		is_number = row->kind == KIND_NUMBER ? program_number(value, to)
						     : parse_duration(seconds, to);
	if (!is_number || *to < row->least || *to > row->most)
		bad_value(row, value);
}

/* The index of the word of `length` bytes in the row's list; -1: it is not there. */
static int find_word(const struct option_row *row, const char *word, size_t length)
{
	for (int i = 0; row->words[i] != NULL; i++)
		if (strlen(row->words[i]) == length && memcmp(row->words[i], word, length) == 0)
			return i;
	return -1;
}

/* One word, as its index; or several, between which commas stand, as bits by their indexes. */
static void read_words(const struct option_row *row, unsigned *to, const char *value)
{
	bool several = row->kind == KIND_WORDS;

	for (const char *at = value;; at++) {
		size_t length = several ? strcspn(at, ",") : strlen(at);
		int word = find_word(row, at, length);

		if (word < 0)
			bad_value(row, value);
		*to = several ? *to | 1u << word : (unsigned)word;
		at += length;
		if (*at == '\0')
			return;
	}
}

void options_add_target(struct options *options, const char *target)
{
	if (options->n_targets == TARGETS_MAX)
		bad_usage("too many targets: ", target);
	options->target = options->targets[options->n_targets++] = target;
}

static void take_option(enum command_number command, const struct option_row *row,
			struct options *options, const char *value)
{
	void *field = (char *)options + row->at;

	switch (row->kind) {
	case KIND_FLAG:
		*(uint8_t *)field = 1;
		break;
	case KIND_VALUE:
		*(unsigned *)field = (unsigned)row->least;
		break;
	case KIND_TEXT:
		*(const char **)field = value;
		break;
	case KIND_TRACE:
		if (value[0] == '\0' || strlen(value) > 32 ||
		    value[strspn(value, "0123456789abcdefABCDEF")] != '\0')
			bad_usage("--trace is the id of a trace, up to 32 hexadecimal digits, not ",
				  value);
		*(const char **)field = value;
		break;
	case KIND_TARGET:
		options_add_target(options, value);
		break;
	case KIND_TIME:
	case KIND_SECONDS:
	case KIND_NUMBER:
		read_bounded(row, field, value);
		break;
	case KIND_WORD:
	case KIND_WORDS:
		read_words(row, field, value);
		break;
	case KIND_HELP:
		options_help(command);
		exit(program_end_output());
	case KIND_VERSION:
		printf("%s (" PACKAGE_STRING ")\n", program_name);
		exit(program_end_output());
	}
}

/* Arguments of getopt_long(): letters, and names whose results are numbers of rows. */
struct getopt_tables {
	char letters[2 * ROWS_MAX + 1];
	struct option names[ROWS_MAX + 1];
};

static void fill_tables(struct getopt_tables *tables, enum command_number command)
{
	char *letter = tables->letters;
	size_t n = 0;

	*tables = (struct getopt_tables){ .letters = "" };
	for (size_t i = 0; i < n_option_rows && n < ROWS_MAX; i++) {
		const struct option_row *row = &option_rows[i];

		if (!is_row_of(row, command))
			continue;
		tables->names[n++] = (struct option){
			row->name, row->argument != NULL ? required_argument : no_argument, NULL,
			FIRST_ROW + (int)i
		};
		if (row->letter == 0)
			continue;
		*letter++ = row->letter;
		if (row->argument != NULL)
			*letter++ = ':';
	}
}

/* The row of a result of getopt_long(); NULL: the option is unknown, which it has printed. */
static const struct option_row *row_of(enum command_number command, int result)
{
	if (result >= FIRST_ROW)
		return &option_rows[result - FIRST_ROW];
	for (size_t i = 0; i < n_option_rows; i++)
		if (is_row_of(&option_rows[i], command) && option_rows[i].letter == result)
			return &option_rows[i];
	return NULL;
}

void options_read(enum command_number command, struct options *options, int *argc, char ***argv)
{
	struct getopt_tables tables;
	int result;

	fill_tables(&tables, command);
	options->print.size = sizeof options->print;
	(*argv)[0] = (char *)(uintptr_t)program_name; /* getopt's messages begin with it */
	while ((result = getopt_long(*argc, *argv, tables.letters, tables.names, NULL)) != -1) {
		const struct option_row *row = row_of(command, result);

		if (row == NULL)
			bad_usage("wrong option", "");
		take_option(command, row, options, optarg);
	}
	*argc -= optind;
	*argv += optind;
	options->check.on |=
		options->check.polling_longer != 0 || options->check.waiting_longer != 0;
	if (options->no_request)
		options->max_requests = 0;
}

static void print_argument(const struct option_row *row)
{
	for (int i = 0; row->words != NULL && row->words[i] != NULL; i++)
		printf("%s%s", i > 0 ? " " : "", row->words[i]);
	if (row->words == NULL && row->argument != NULL)
		fputs(row->argument, stdout);
}

static void complete_options(enum command_number command)
{
	for (size_t i = 0; i < n_option_rows; i++) {
		const struct option_row *row = &option_rows[i];

		if (!is_row_of(row, command))
			continue;
		printf("--%s%s\t%s\t", row->name, row->argument != NULL ? "=" : "", row->help);
		print_argument(row);
		putchar('\n');
	}
}

int options_complete(const char *name)
{
	for (int i = 0; i < COMMANDS_OF_TDT; i++)
		if (name == NULL)
			printf("%s\t%s\t\n", commands[i].name, commands[i].word);
		else if (strcmp(name, commands[i].name) == 0)
			complete_options((enum command_number)i);
	return program_end_output();
}
