// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt: look at the tasks of any process from outside, and at what was saved of them. */

#include "cli/tdt.h"

#include <locale.h>
#include <string.h>

#include "base/text.h"

static int (*const run[COMMANDS_OF_TDT])(int argc, char **argv) = {
	[COMMAND_PS] = command_ps,	     [COMMAND_TOP] = command_top,
	[COMMAND_BT] = command_bt,	     [COMMAND_PROFILE] = command_profile,
	[COMMAND_METRICS] = command_metrics, [COMMAND_DIFF] = command_diff,
	[COMMAND_RECORD] = command_record,   [COMMAND_PRINT] = command_print,
	[COMMAND_REPORT] = command_report,   [COMMAND_SET] = command_set,
};

int main(int argc, char **argv)
{
	struct options options = { .verbose = false };

	setlocale(LC_ALL, "");
	bound_memory();
	/* The old name of the command print is a link to this program; a package may rename both.
	 */
	if (argc > 0 && strstr(tdt__file_name(argv[0]), "tdt-tree") != NULL)
		return print_as_tdt_tree(argc, argv);
	if (argc < 2)
		bad_usage("a command is missing", "");
	for (size_t i = 0; i < COMMANDS_OF_TDT; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return run[i](argc - 1, argv + 1);
	if (strcmp(argv[1], "complete") == 0) /* for cli/completions */
		return options_complete(argv[2]);
	if (argv[1][0] != '-')
		bad_usage("there is no such command: ", argv[1]);
	options_read(COMMAND_TDT, &options, &argc, &argv);
	bad_usage("a command is missing", "");
}
