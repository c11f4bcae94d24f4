// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt bt: where the tasks of a process wait, as call trees. */

#include "cli/bt.h"

#include <stdlib.h>

#include "cli/answer.h"
#include "reader/last_dump.h"
#include "symbolize/modules.h"
#include "tree-printer/dumps.h"
#include "tree-printer/terminal.h"

struct bt_printing {
	const struct tdt_snapshot *snapshot;
	struct tdt__tasks *tasks; /* NULL: they are of a recording */
	const struct tdt_print_options *print;
	const struct last *last;
};

static int print_snapshot(FILE *file, void *arg)
{
	const struct bt_printing *printing = arg;
	const struct tdt_dump_options options = { .size = sizeof options,
						  .print = printing->print };
	struct tdt__string title = { .options = printing->print };
	struct tdt__out out = { .file = file };
	int error;

	if (printing->tasks != NULL)
		tdt__tasks_name(printing->tasks, naming_until());
	if (printing->last != NULL && printing->print->format == TDT_PRINT_TEXT) {
		last_title(&title, printing->last);
		tdt__string_puts(&title, "\n");
		last_missing(&title, printing->last);
		tdt__out_take(&out, &title);
	}
	error = tdt__out_end(&out);
	return error != 0 ? error
			  : tdt__snapshot_print_by(printing->snapshot, file, &options,
						   naming_until());
}

/* Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
static int choose_by_trace(struct bt_command *command, struct outside *outside, size_t registry)
{
	struct tdt__tasks tasks;
	int status = PROGRAM_GOES_ON;

	if (command->options.trace == NULL)
		return status;
	status = outside_tasks(outside, &tasks, registry, &command->options);
	if (status != PROGRAM_GOES_ON)
		return status;
	if (!choose_trace(&command->choice, &tasks, command->options.trace))
		status = report_no_memory();
	tdt__tasks_fini(&tasks);
	return status;
}

int bt_registry(void *arg, struct outside *outside, size_t registry)
{
	struct bt_command *command = arg;
	struct bt_printing printing;
	struct answer answer;
	int status = choose_by_trace(command, outside, registry);

	if (status == PROGRAM_GOES_ON)
		status = answer_take(&answer, &command->options, &command->choice, outside,
				     registry);
	if (status != PROGRAM_GOES_ON)
		return status;
	printing = (struct bt_printing){ &answer.findings->public, &answer.tasks,
					 &command->options.print, NULL };
	status =
	    print_named(print_snapshot, &printing, outside->images.table, &command->options, NULL);
	if (status == EXIT_SUCCESS && command->options.check.on)
		status = check_snapshot(command->options.check, &answer.findings->public);
	if (answer.ended)
		status = report_ended();
	answer_fini(&answer);
	return status;
}

int bt_recording(void *arg, struct last *last)
{
	struct bt_command *command = arg;
	const char *trace = command->options.trace;
	struct tdt__findings *findings = NULL;
	struct bt_printing printing;
	int status;

	if (trace == NULL || choose_trace(&command->choice, &last->states.tasks, trace))
		findings = tdt__last_dump(&last->states, &command->choice, last->read.modules);
	if (findings == NULL)
		return report_no_memory();
	printing = (struct bt_printing){ &findings->public, NULL, &command->options.print, last };
	status =
	    print_named(print_snapshot, &printing, last->read.modules, &command->options, NULL);
	tdt__findings_free(findings);
	return status;
}

int command_bt(int argc, char **argv)
{
	struct bt_command command = { .options.max_requests = 1000 };
	struct work work = { .options = &command.options,
			     .command = &command,
			     .registry = bt_registry,
			     .recording = bt_recording,
			     .again = true };
	int status;

	read_command_line(COMMAND_BT, &command.options, &argc, &argv, TARGETS_AND_MORE);
	if (command.options.trace != NULL && argc > 0)
		bad_usage("either --trace or the ids of tasks, not ", argv[0]);
	read_choice(&command.choice, argc, argv);
	tdt__terminal_choose(&command.options.print, stdout);
	status = work_on_each(&work);
	free((void *)(uintptr_t)command.choice.ids);
	return status;
}
