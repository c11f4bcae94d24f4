// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt ps: list the tasks of a process, from their records alone. */

#include <config.h>

#include "cli/ps.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "reader/dump.h"
#include "reader/recorded.h"
#include "tree-printer/terminal.h"

static char ps_name[] = "tdt";

static const struct program ps_program = {
	.name = ps_name,
	.help = "Usage: tdt ps [OPTION]... TARGET\n"
		"List the async tasks of a process, of a core file, or of a recording at its "
		"end: what they do, since when,\n"
		"what they wait for, and where they were spawned.  TARGET is the number or the "
		"name of a process.\n"
		"\n"
		"  -p, --pid=TARGET      the same\n"
		"  --core=FILE           read a core file instead of a process\n"
		"  --dir=DIR             read recordings in a directory (TDT_RECORD_DIR): of "
		"several, the newest one of a\n"
		"                        process that was killed; or one file\n"
		"  --exe=FILE            the program of the core file\n"
		"  --sysroot=DIR         where the files of the core file's process lie\n"
		"  --sort=KEY            id (the default), name, state, for, age or polls\n"
		"  --reverse             in the other order\n"
		"  --state=STATE,...     only tasks that are waiting, runnable, polling, ended or "
		"unknown\n"
		"  --name=PATTERN        only tasks whose name matches, as \"conn *\"\n"
		"  --longer=TIME         only tasks that have been in their state for longer, as "
		"10ms\n"
		"  --tree                below the task that spawned them\n"
		"  --dot                 who waits for whom, for dot(1); rings are red\n"
		"  --threads             the threads that poll, instead of the tasks\n"
		"  --json                as a JSON object on one line\n"
		"  --check               exit with 1 if there is a deadlock\n"
		"  --polling-longer=TIME the same if a poll has gone on for longer\n"
		"  --waiting-longer=TIME the same if a task has waited for longer\n"
		"  --timeout=TIME        give up after that (default: 60s)\n"
		"  --verbose             say how long each step took\n"
		"  --utf8, --ascii       the lines of --tree (default: as the locale is)\n"
		"  --color=WHEN          auto (the default: on a terminal), always or never\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0; 1 if --check found something; 2 if something went wrong; 3 if a "
		"deadlock is unproven.\n",
};

enum ps_key { BY_ID, BY_NAME, BY_STATE, BY_FOR, BY_AGE, BY_POLLS };

struct ps_command {
	struct outside_options outside;
	int (*form)(struct tdt__out *out, const struct listing *listing);
	enum ps_key key;
	bool reverse, threads;
	unsigned states; /* bits by index of `state_names`; 0: all */
	const char *name;
	uint64_t longer;
	struct check check;
};

/* In the order of the bits of `states`. */
static const char *const state_names[] = { "waiting", "runnable", "polling", "ended",
					   "unknown", NULL };

/* --- Options ------------------------------------------------------------------------ */

enum {
	OPTION_SORT = OPTIONS_OWN,
	OPTION_REVERSE,
	OPTION_STATE,
	OPTION_NAME,
	OPTION_LONGER,
	OPTION_TREE,
	OPTION_DOT,
	OPTION_THREADS
};

static int set_key(struct ps_command *command, const char *value)
{
	static const char *const keys[] = { "id", "name", "state", "for", "age", "polls", NULL };
	int key = program_word(keys, value);

	if (key < 0)
		return program_bad_usage(&ps_program, "--sort is by id, name, state, for, age or "
						      "polls, not by ", value);
	command->key = (enum ps_key)key;
	return PROGRAM_GOES_ON;
}

static int set_states(struct ps_command *command, const char *value)
{
	if (!program_words(state_names, value, &command->states))
		return program_bad_usage(&ps_program, "tasks are waiting, runnable, polling, ended "
						      "or unknown, not ", value);
	return PROGRAM_GOES_ON;
}

static int ps_option(void *arg, int option, const char *value)
{
	struct ps_command *command = arg;

	switch (option) {
	case OPTION_SORT:
		return set_key(command, value);
	case OPTION_REVERSE:
		command->reverse = true;
		return PROGRAM_GOES_ON;
	case OPTION_STATE:
		return set_states(command, value);
	case OPTION_NAME:
		command->name = value;
		return PROGRAM_GOES_ON;
	case OPTION_LONGER:
		return set_duration(&command->longer, value);
	case OPTION_TREE:
		command->form = ps_tree;
		return PROGRAM_GOES_ON;
	case OPTION_DOT:
		command->form = ps_dot;
		return PROGRAM_GOES_ON;
	case OPTION_THREADS:
		command->threads = true;
		command->form = ps_threads;
		return PROGRAM_GOES_ON;
	case OPTION_CHECK:
	case OPTION_POLLING_LONGER:
	case OPTION_WAITING_LONGER:
		return check_option(&command->check, option, value);
	default:
		return outside_option(&command->outside, option, value);
	}
}

static int ps_options(struct ps_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		{ "sort", required_argument, NULL, OPTION_SORT },
		{ "reverse", no_argument, NULL, OPTION_REVERSE },
		{ "state", required_argument, NULL, OPTION_STATE },
		{ "name", required_argument, NULL, OPTION_NAME },
		{ "longer", required_argument, NULL, OPTION_LONGER },
		{ "tree", no_argument, NULL, OPTION_TREE },
		{ "dot", no_argument, NULL, OPTION_DOT },
		{ "threads", no_argument, NULL, OPTION_THREADS },
		OPTIONS_OF_CHECK,
		OPTION_OF_TIMEOUT,
		OPTIONS_OF_TARGET,
	};
	static const struct command_line line = {
		.program = &ps_program, .letters = "p:", .options = options, .option = ps_option
	};
	int status = read_command_line(&line, command, &command->outside, &argc, &argv);

	if (status == PROGRAM_GOES_ON && command->outside.dir != NULL && command->threads)
		status = program_bad_usage(&ps_program, "a recording has no list of threads: "
							"see tdt record --summary", "");
	return status == PROGRAM_GOES_ON
		       ? check_of_recording(&command->outside, &command->check)
		       : status;
}

/* --- Which tasks, in which order ---------------------------------------------------- */

static unsigned state_index(const struct tdt__seen_task *task)
{
	if (task->outcome != NULL)
		return 3;
	switch (task->member.info.state) {
	case TDT_TASK_RUNNING:
		return 2;
	case TDT_TASK_RUNNABLE:
		return 1;
	case TDT_TASK_UNKNOWN:
		return 4;
	default:
		return 0;
	}
}

void ps_state(struct tdt__string *string, const struct tdt__seen_task *task)
{
	tdt__string_puts(string, state_names[state_index(task)]);
	if (task->outcome != NULL)
		tdt__string_printf(string, " (%s)", task->outcome);
	if (task->last != NULL)
		tdt__string_printf(string, " (was %s)", task->last);
}

static bool lets_through(const struct ps_command *command, const struct tdt__seen_task *task)
{
	const struct tdt_trace_info *info = &task->member.info;

	return (command->states == 0 || (command->states & 1u << state_index(task)) != 0) &&
	       info->state_ns >= command->longer &&
	       (command->name == NULL ||
		(info->name != NULL && fnmatch(command->name, info->name, 0) == 0));
}

/* Larger numbers come first, and smaller ids. */
static int compare_by(const struct ps_command *command, const struct tdt__seen_task *a,
		      const struct tdt__seen_task *b)
{
	const struct tdt_trace_info *x = &a->member.info, *y = &b->member.info;

	switch (command->key) {
	case BY_NAME:
		return strcmp(x->name != NULL ? x->name : "", y->name != NULL ? y->name : "");
	case BY_STATE:
		return (int)state_index(b) - (int)state_index(a);
	case BY_FOR:
		return (x->state_ns < y->state_ns) - (x->state_ns > y->state_ns);
	case BY_AGE:
		return (x->spawned_ns < y->spawned_ns) - (x->spawned_ns > y->spawned_ns);
	case BY_POLLS:
		return (x->polls < y->polls) - (x->polls > y->polls);
	case BY_ID:
		break;
	}
	return 0;
}

static int by_command(const void *a, const void *b, void *arg)
{
	const struct ps_command *command = arg;
	const struct tdt__seen_task *x = *(const struct tdt__seen_task *const *)a;
	const struct tdt__seen_task *y = *(const struct tdt__seen_task *const *)b;
	int order = compare_by(command, x, y);

	if (order == 0)
		order = (x->member.info.id > y->member.info.id) -
			(x->member.info.id < y->member.info.id);
	return command->reverse ? -order : order;
}

static int choose_shown(struct ps_command *command, struct listing *listing)
{
	const struct tdt__tasks *tasks = listing->tasks;

	listing->shown = malloc((tasks->n + 1) * sizeof(const struct tdt__seen_task *));
	if (listing->shown == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < tasks->n; i++)
		if (lets_through(command, &tasks->task[i]))
			listing->shown[listing->n++] = &tasks->task[i];
	qsort_r(listing->shown, listing->n, sizeof(const struct tdt__seen_task *), by_command,
		command);
	return 0;
}

/* --- The check ---------------------------------------------------------------------- */

/* The exit status by what --check finds. */
static int check_listing(struct check check, const struct listing *listing)
{
	bool at_least = tdt__tasks_at_least(listing->tasks);

	if (check_has_deadlock(&check, listing->found.cycles, listing->found.n_cycles))
		return TDT_CHECK_FOUND;
	for (size_t i = 0; i < listing->tasks->n; i++)
		if (check_is_bad(&check, &listing->tasks->task[i].member.info, at_least))
			return TDT_CHECK_FOUND;
	return check_report(&check);
}

/* --- Printing ----------------------------------------------------------------------- */

static int print_listing(const struct ps_command *command, const struct listing *listing)
{
	struct tdt__out out = { .file = stdout };
	int error = command->form(&out, listing);

	error = tdt__out_end(&out, error);
	if (error == -ENOMEM)
		return report_no_memory();
	if (error != 0) {
		program_output_failed(&ps_program, -error);
		return TDT_TROUBLE;
	}
	return command->check.on ? check_listing(command->check, listing) : EXIT_SUCCESS;
}

static int list_these(struct ps_command *command, struct listing *listing,
		      struct tdt__tasks *tasks)
{
	struct tdt__cycles cycles = { 0 };
	struct tdt_snapshot_group live = { .size = sizeof live };
	const struct tdt_snapshot_group *const groups = &live;
	const struct tdt_trace_info **infos = tdt__tasks_live(tasks, &live.n);
	int status;

	tdt__tasks_busy(tasks);
	listing->tasks = tasks;
	listing->print = &command->outside.print;
	listing->threads = command->threads;
	live.tasks = infos;
	if (infos == NULL ||
	    (tasks->target != NULL ? tdt__outside_rings(&cycles, tasks)
				   : tdt__tasks_rings(&cycles, tasks)) != 0 ||
	    choose_shown(command, listing) != 0) {
		status = report_no_memory();
	} else {
		listing->found = (struct tdt_snapshot){ .groups = &groups,
							.n_groups = 1,
							.cycles = cycles.list,
							.n_cycles = cycles.n };
		listing->found.orphans = tdt__tasks_orphans(tasks, &listing->found.n_orphans);
		status = print_listing(command, listing);
	}
	tdt__cycles_fini(&cycles);
	free(infos);
	free(listing->shown);
	return status;
}

/* The value of the variable in /proc/PID/environ, where each ends with NUL; NULL: it is not set. */
static const char *find_variable(const char *environment, size_t n, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = environment; at < environment + n; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=' && at[length + 1] != '\0')
			return at + length + 1;
	return NULL;
}

/* Say what of the recording that the environment of the process asks for is not there. */
static void report_recording(const struct outside *outside, size_t registry)
{
	static char environment[1 << 17];
	const struct tdt__found *found = &outside->found[registry];
	ssize_t n = outside->target.core != NULL
			? -1
			: tdt__target_proc_text(&outside->target, "environ", environment,
						sizeof environment);
	const char *size = n > 0 ? find_variable(environment, (size_t)n, "TDT_RECORD") : NULL;
	const char *dir = n > 0 ? find_variable(environment, (size_t)n, "TDT_RECORD_DIR") : NULL;
	const struct tdt__mapping *rings =
	    tdt__target_mapping(&outside->target, found->registry.rings);
	char text[512] = "";

	if (size == NULL || strcmp(size, "0") == 0)
		return;
	if (!tdt__recorded_runs(&outside->target, found))
		snprintf(text, sizeof text, "TDT_RECORD=%.64s: the process does not record", size);
	else if (dir != NULL && (rings == NULL || !rings->is_file))
		snprintf(text, sizeof text,
			 "TDT_RECORD_DIR=%.256s: the process records in memory only", dir);
	if (text[0] != '\0')
		report_trouble(text);
}

static int list_registry(struct ps_command *command, struct outside *outside, size_t registry)
{
	struct listing listing = { .several = outside->n_found > 1 };
	struct tdt__tasks tasks;
	int status = outside_tasks(outside, &tasks, registry, &command->outside);

	if (status != PROGRAM_GOES_ON)
		return status;
	status = list_these(command, &listing, &tasks);
	report_recording(outside, registry);
	tdt__tasks_fini(&tasks);
	return status;
}

static int list_all_registries(FILE *out, void *arg)
{
	struct ps_command *command = arg;
	struct outside outside;
	int status = outside_open(&outside, &command->outside), worst = EXIT_SUCCESS;

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	for (size_t i = 0; i < outside.n_found; i++) {
		worst = worse_status(worst, list_registry(command, &outside, i));
	}
	outside_close(&outside);
	return worst;
}

static int list_recording(FILE *out, void *arg)
{
	struct ps_command *command = arg;
	struct last last;
	struct listing listing = { .last = &last };
	int status = last_open(&last, &command->outside);

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	status = list_these(command, &listing, &last.states.tasks);
	last_close(&last);
	return status;
}

int command_ps(int argc, char **argv)
{
	struct ps_command command = { .outside.print.size = sizeof command.outside.print,
				      .form = ps_table };
	int status = ps_options(&command, argc, argv);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (command.outside.print.format == TDT_PRINT_JSON)
		command.form = ps_json;
	tdt__terminal_choose(&command.outside.print, stdout);
	status = outside_apart(command.outside.dir != NULL ? list_recording : list_all_registries,
			       &command, &command.outside);
	return status >= 0 ? status : TDT_TROUBLE;
}
