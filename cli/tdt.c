// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt: look at the tasks of any process from outside, and at what was saved of them. */

#include <config.h>

#include "cli/tdt.h"
#include "cli/print.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>

static char tdt_name[] = "tdt";

const struct program outside_program = {
	.name = tdt_name,
	.help = "Usage: tdt COMMAND [OPTION]... TARGET\n"
		"Look at the async tasks of a process that uses the tdt library, or of its core "
		"file, from outside.  Nothing\n"
		"is written to the process, and none of its threads is stopped.\n"
		"\n"
		"  tdt ps      list the tasks: what they do, since when, and what they wait for\n"
		"  tdt top     show the same again and again: who waits, where, and what runs\n"
		"  tdt bt      print where they wait: call trees, the same ones only once\n"
		"  tdt profile sum up for a time where they wait, and what they run\n"
		"  tdt metrics print numbers for Prometheus: tasks by state, polls, panics\n"
		"  tdt diff    compare two answers of bt or ps: what has not moved, and what has "
		"grown\n"
		"  tdt record  save what the flight recorder has recorded, or sum it up\n"
		"  tdt print   print what was saved: traces and dumps (JSON), recordings\n"
		"  tdt set     have the process watch or record them, for a time\n"
		"\n"
		"TARGET is the number or the name of a process (or -p TARGET), --core=FILE, or the "
		"--dir=DIR of recordings.\n"
		"'tdt COMMAND --help' explains a command.\n"
		"\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0; 1 if --check found something; 2 if something went wrong.\n",
};

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "bt", command_bt },
	{ "diff", command_diff },
	{ "metrics", command_metrics },
	{ "print", command_print },
	{ "profile", command_profile },
	{ "ps", command_ps },
	{ "record", command_record },
	{ "set", command_set },
	{ "top", command_top },
};

/* The old name of the command print is a link to this program; a package may rename both. */
static bool is_tdt_tree(const char *path)
{
	const char *name = strrchr(path, '/');

	return strstr(name != NULL ? name : path, "tdt-tree") != NULL;
}

int main(int argc, char **argv)
{
	struct tdt_print_options print = { .size = sizeof print };

	setlocale(LC_ALL, "");
	bound_memory();
	if (argc > 0 && is_tdt_tree(argv[0]))
		return print_as_tdt_tree(argc, argv);
	if (argc < 2)
		return program_bad_usage(&outside_program, "a command is missing", "");
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++)
		if (strcmp(argv[1], commands[i].name) == 0) {
			argv[1] = tdt_name; /* getopt_long() begins its messages with it */
			return commands[i].run(argc - 1, argv + 1);
		}
	if (strcmp(argv[1], "--help") == 0)
		return program_option(&outside_program, &print, 'h', NULL);
	if (strcmp(argv[1], "--version") == 0)
		return program_option(&outside_program, &print, 'v', NULL);
	return program_bad_usage(&outside_program, "there is no such command: ", argv[1]);
}
