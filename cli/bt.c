// SPDX-License-Identifier: Apache-2.0 OR MIT
/* tdt bt: where the tasks of a process wait, as call trees. */

#include <config.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/apart.h"
#include "cli/last.h"
#include "cli/tdt.h"
#include "reader/dump.h"
#include "reader/last_dump.h"
#include "symbolize/modules.h"
#include "tree-printer/dumps.h"
#include "tree-printer/terminal.h"

#define NAMING_TIME (20 * TDT__SECOND)

static char bt_name[] = "tdt";

static const struct program bt_program = {
	.name = bt_name,
	.forms = (const char *const[]){ "text", "json", "folded", NULL },
	.help = "Usage: tdt bt [OPTION]... TARGET [TASK]...\n"
		"Print where the async tasks of a process or of a core file wait, or of a "
		"recording waited at its end: all of\n"
		"them, or those with the ids TASK.\n"
		"Tasks that wait at the same places are printed once.  If the library in the "
		"process listens, each task is requested\n"
		"to show where it waits, which wakes it once.  Otherwise there are the stacks of "
		"polls that go on, and the last\n"
		"trees of tasks that are watched (TDT_WATCH=10ms).\n"
		"\n"
		"  -p, --pid=TARGET  the same\n"
		"  --core=FILE       read a core file instead of a process\n"
		"  --dir=DIR         read recordings in a directory (TDT_RECORD_DIR): of several, "
		"the newest one of a process\n"
		"                    that was killed; or one file\n"
		"  --exe=FILE        the program of the core file\n"
		"  --sysroot=DIR     where the files of the core file's process lie\n"
		"  --debug-dir=DIR   separate debug files, instead of /usr/lib/debug\n"
		"  --request         also request tasks whose last tree shows where they wait\n"
		"  --no-request      only read: make no request to any task\n"
		"  --max-requests=N  request no more tasks than these (default: 1000)\n"
		"  --ptrace          stop each thread that runs while its stack is copied: take no "
		"sample\n"
		"  --no-symbols      look up no names: print modules and offsets\n"
		"  --format=FORM     text (the default), json, or folded: stacks for flame graphs\n"
		"  --json            the same as --format=json\n"
		"  --addresses       symbol+0x1f instead of the place in the source\n"
		"  --full-paths      the source's whole path\n"
		"  --full            also the calls in libraries, which are folded otherwise\n"
		"  --plumbing        also the frames of tdt itself\n"
		"  --check           exit with 1 if there is a deadlock; request only tasks that "
		"may be in one\n"
		"  --polling-longer=TIME  the same if a poll has gone on for longer\n"
		"  --waiting-longer=TIME  the same if a task has waited for longer\n"
		"  --timeout=TIME    give up after that (default: 60s)\n"
		"  --verbose         say how long each step took\n"
		"  --utf8, --ascii   the lines of the tree (default: as the locale is)\n"
		"  --color=WHEN      auto (the default: on a terminal), always or never\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0; 1 if --check found something; 2 if something went wrong; 3 if a "
		"deadlock is unproven.\n",
};

struct bt_command {
	struct outside_options outside;
	struct check check;
	bool no_symbols, stops, requests_all;
	uint32_t max_requests; /* 0: make none */
	uint64_t *ids;
	size_t n_ids;
};

/* --- Options ------------------------------------------------------------------------------ */

enum {
	OPTION_NO_REQUEST = OPTIONS_OWN,
	OPTION_REQUEST,
	OPTION_MAX_REQUESTS,
	OPTION_PTRACE,
	OPTION_NO_SYMBOLS
};

static int set_max_requests(struct bt_command *command, const char *value)
{
	uint64_t number;

	if (!program_number(value, &number) || number > UINT32_MAX)
		return program_bad_usage(&bt_program, "not a number of requests: ", value);
	command->max_requests = (uint32_t)number;
	return PROGRAM_GOES_ON;
}

static int bt_option(void *arg, int option, const char *value)
{
	struct bt_command *command = arg;

	switch (option) {
	case OPTION_REQUEST:
		command->requests_all = true;
		return PROGRAM_GOES_ON;
	case OPTION_NO_REQUEST:
		command->max_requests = 0;
		return PROGRAM_GOES_ON;
	case OPTION_MAX_REQUESTS:
		return set_max_requests(command, value);
	case OPTION_PTRACE:
		command->stops = true;
		return PROGRAM_GOES_ON;
	case OPTION_NO_SYMBOLS:
		command->no_symbols = true;
		return PROGRAM_GOES_ON;
	case OPTION_CHECK:
	case OPTION_POLLING_LONGER:
	case OPTION_WAITING_LONGER:
		return check_option(&command->check, option, value);
	default:
		return outside_option(&command->outside, option, value);
	}
}

/* The arguments behind the target are ids of tasks. */
static int bt_ids(struct bt_command *command, int argc, char **argv)
{
	command->ids = calloc((size_t)argc + 1, sizeof command->ids[0]);
	if (command->ids == NULL)
		return report_no_memory();
	for (int i = 0; i < argc; i++)
		if (!program_number(argv[i], &command->ids[command->n_ids++]))
			return program_bad_usage(&bt_program, "not the id of a task: ", argv[i]);
	return PROGRAM_GOES_ON;
}

static int bt_options(struct bt_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		OPTION_FORMAT,
		{ "request", no_argument, NULL, OPTION_REQUEST },
		{ "no-request", no_argument, NULL, OPTION_NO_REQUEST },
		{ "ptrace", no_argument, NULL, OPTION_PTRACE },
		{ "max-requests", required_argument, NULL, OPTION_MAX_REQUESTS },
		{ "no-symbols", no_argument, NULL, OPTION_NO_SYMBOLS },
		OPTION_OF_ADDRESSES,
		OPTIONS_OF_FRAMES,
		OPTIONS_OF_CHECK,
		OPTION_OF_TIMEOUT,
		OPTIONS_OF_TARGET,
	};
	static const struct command_line line = { .program = &bt_program,
						  .letters = "p:",
						  .options = options,
						  .option = bt_option,
						  .more = true };
	int status = read_command_line(&line, command, &command->outside, &argc, &argv);

	if (status == PROGRAM_GOES_ON)
		status = check_of_recording(&command->outside, &command->check);
	return status == PROGRAM_GOES_ON ? bt_ids(command, argc, argv) : status;
}

/* --- Requests ----------------------------------------------------------------------------- */

#define REQUEST_TIME TDT__SECOND

static void report_not_requested(const struct bt_command *command,
				 const struct tdt__answers *answers)
{
	char text[256];

	if (answers->left_out == 0)
		return;
	snprintf(text, sizeof text,
		 "%" PRIu64 " tasks were only read, not requested: each request wakes a task, so "
		 "tdt makes %" PRIu32 " at most (--max-requests)",
		 answers->left_out, command->max_requests);
	report_trouble(text);
}

static void report_no_requests(const struct tdt__trouble *trouble)
{
	char text[sizeof trouble->text + 100];

	snprintf(text, sizeof text,
		 "%s.  So there are only the trees that can be read, as with --no-request",
		 trouble->text);
	report_trouble(text);
}

/* Request the trees.  If that fails, there is still what can be read. */
static void request_trees(const struct bt_command *command, const struct outside *outside,
			  size_t registry, const struct tdt__task_choice *choice,
			  struct tdt__answers *answers)
{
	uint64_t start = tdt__clock();
	struct tdt__trouble trouble;
	struct tdt__door door;
	int error = tdt__door_open(&door, &outside->target, &outside->found[registry], &trouble);

	report_time(&command->outside, "going through the door", start);
	if (error == 0) {
		start = tdt__clock();
		error = tdt__answers_request(answers, &door, choice, command->max_requests,
					     REQUEST_TIME, &trouble);
		tdt__door_close(&door);
		report_time(&command->outside, "requesting the trees", start);
	}
	if (error != 0)
		report_no_requests(&trouble);
	report_not_requested(command, answers);
}

static bool makes_requests(const struct bt_command *command, const struct outside *outside,
			   size_t registry)
{
	return command->outside.core == NULL && command->max_requests != 0 &&
	       outside->found[registry].registry.slabs != 0;
}

/* The ids of the tasks whose rings are unproven.  Returns 0 or -ENOMEM. */
static int unproven_ids(struct tdt__task_choice *choice, uint64_t **ids, struct tdt__tasks *tasks)
{
	struct tdt__cycles cycles = { 0 };
	int error = tdt__outside_rings(&cycles, tasks);

	*ids = error == 0 ? malloc((tasks->n + 1) * sizeof **ids) : NULL;
	for (size_t i = 0; i < cycles.n && *ids != NULL; i++)
		for (size_t k = 0; k < cycles.cycle[i].n && cycles.cycle[i].unproven; k++)
			(*ids)[choice->n_ids++] = cycles.cycle[i].tasks[k]->id;
	tdt__cycles_fini(&cycles);
	choice->ids = *ids;
	return *ids != NULL ? 0 : -ENOMEM;
}

/*
 * A check may run every minute, and must not wake tasks: it requests only those of which an answer
 * tells whether they are in a deadlock.
 */
static int request_unproven(struct bt_command *command, struct outside *outside, size_t registry,
			    struct tdt__answers *answers)
{
	struct tdt__task_choice choice = { 0 };
	struct tdt__tasks tasks;
	uint64_t *ids = NULL;
	int status = outside_tasks(outside, &tasks, registry, &command->outside);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (unproven_ids(&choice, &ids, &tasks) != 0)
		status = report_no_memory();
	else if (choice.n_ids != 0)
		request_trees(command, outside, registry, &choice, answers);
	free(ids);
	tdt__tasks_fini(&tasks);
	return status;
}

/* --- Printing ----------------------------------------------------------------------------- */

struct bt_printing {
	const struct tdt_snapshot *snapshot;
	const struct tdt_print_options *print;
	const struct last *last;
};

/* The lines above the text of a dump that say of which recording it is.  0 or -ENOMEM. */
static int print_last_title(FILE *file, const struct bt_printing *printing)
{
	struct tdt__out out = { .file = file };
	struct tdt__string string = { 0 };
	int error;

	last_title(&string, printing->last, printing->print);
	tdt__string_puts(&string, "\n");
	last_missing(&string, printing->last);
	error = string.failed ? -ENOMEM : 0;
	if (error == 0)
		tdt__out_add(&out, string.bytes, string.n);
	tdt__string_free(&string);
	return tdt__out_end(&out, error);
}

static int print_snapshot(FILE *out, void *arg)
{
	const struct bt_printing *printing = arg;
	const struct tdt_dump_options options = { .size = sizeof options,
						  .print = printing->print };
	int error = 0;

	if (printing->last != NULL && printing->print->format == TDT_PRINT_TEXT)
		error = print_last_title(out, printing);
	if (error != 0)
		return error;
	return tdt__snapshot_print_by(printing->snapshot, out, &options,
				      tdt__clock() + NAMING_TIME);
}

static int print_error(int error)
{
	if (error == -ENOMEM)
		return report_no_memory();
	program_output_failed(&bt_program, -error);
	return TDT_TROUBLE;
}

/*
 * Print with names, or if the child that looks them up fails, without them.  `last`: the recording
 * that the findings are of; NULL: of a process or a core file.
 */
static int print_findings(const struct bt_command *command, struct tdt__modules *modules,
			  const struct tdt__findings *findings, const struct last *last)
{
	struct bt_printing printing = { &findings->public, &command->outside.print, last };
	uint64_t start = tdt__clock();
	const char *why = "";
	char text[128];
	int error = -ECANCELED;

	if (!command->no_symbols) {
		error = do_apart(print_snapshot, &printing, bound_names(), &why);
		report_time(&command->outside, "looking up names and printing", start);
	}
	if (error == -ECANCELED) {
		if (!command->no_symbols) {
			snprintf(text, sizeof text,
				 "the look-up of names %s, so there are none", why);
			report_trouble(text);
		}
		tdt__modules_withhold(modules);
		error = print_snapshot(stdout, &printing);
	}
	return error == 0 ? EXIT_SUCCESS : print_error(error);
}

/* Say once why the stacks of running threads are missing, and what helps. */
static void report_sampling(const struct tdt__sampling *sampling)
{
	char text[256];

	if (sampling->refused == 0)
		return;
	snprintf(text, sizeof text, "stacks of running threads could not be read: %s: %s.  %s",
		 sampling->stops ? "ptrace(2)" : "perf_event_open(2)", strerror(sampling->refused),
		 sampling->stops ? "Without --ptrace samples are taken"
				 : "What helps: sysctl kernel.perf_event_paranoid=2, to run tdt as "
				   "root, or --ptrace");
	report_trouble(text);
}

static int check_dump(struct check check, const struct tdt_snapshot *snapshot)
{
	if (check_has_deadlock(&check, snapshot->cycles, snapshot->n_cycles))
		return TDT_CHECK_FOUND;
	for (size_t i = 0; i < snapshot->n_groups; i++)
		for (size_t k = 0; k < snapshot->groups[i]->n; k++)
			if (check_is_bad(&check, snapshot->groups[i]->tasks[k], snapshot->at_least))
				return TDT_CHECK_FOUND;
	return check_report(&check);
}

/* What there is to be seen before a request may change it. */
struct bt_before {
	struct tdt__tasks tasks;
	struct tdt__findings *findings; /* NULL: there is nothing */
};

static int look_before(struct bt_before *before, const struct bt_command *command,
		       struct outside *outside, size_t registry)
{
	static const struct tdt__answers none;
	const struct tdt__task_choice choice = { command->ids, command->n_ids, false };
	struct tdt__sampling sampling = { .stops = command->stops };
	int status = outside_tasks(outside, &before->tasks, registry, &command->outside);

	if (status != PROGRAM_GOES_ON)
		return status;
	before->findings = tdt__outside_dump(&before->tasks, &choice, &none, &sampling);
	return before->findings != NULL ? status : report_no_memory();
}

static void forget_before(struct bt_before *before)
{
	tdt__findings_free(before->findings);
	tdt__tasks_fini(&before->tasks);
}

/* Dump what there is to be read now.  `start` is when the requests began. */
static int dump_answered(struct bt_command *command, struct outside *outside, size_t registry,
			 const struct tdt__answers *answers, const struct bt_before *before,
			 uint64_t start)
{
	const struct tdt__task_choice choice = { command->ids, command->n_ids, false };
	struct tdt__sampling sampling = { .stops = command->stops };
	struct tdt__findings *findings;
	struct tdt__tasks tasks;
	int status = outside_tasks(outside, &tasks, registry, &command->outside);
	uint64_t now = tdt__clock();
	bool ended;

	if (status != PROGRAM_GOES_ON)
		return status;
	findings = tdt__outside_dump(&tasks, &choice, answers, &sampling);
	ended = !tdt__target_is_there(&outside->target);
	report_time(&command->outside, "reading the trees", now);
	report_sampling(&sampling);
	if (findings == NULL) {
		status = report_no_memory();
	} else {
		findings->public.took_ns = tdt__clock() - start;
		if (before->findings != NULL)
			tdt__outside_keep(findings, before->findings, answers);
		status = print_findings(command, outside->images.table, findings, NULL);
	}
	if (status == EXIT_SUCCESS && command->check.on)
		status = check_dump(command->check, &findings->public);
	if (ended) /* so trees may be missing */
		status = report_ended();
	tdt__findings_free(findings);
	tdt__tasks_fini(&tasks);
	return status;
}

static int dump_registry(struct bt_command *command, struct outside *outside, size_t registry)
{
	const struct tdt__task_choice choice = { command->ids, command->n_ids,
						 !command->requests_all };
	struct bt_before before = { .findings = NULL };
	struct tdt__answers answers = { 0 };
	uint64_t start = tdt__clock();
	int status = PROGRAM_GOES_ON;

	if (makes_requests(command, outside, registry) && command->check.on) {
		status = request_unproven(command, outside, registry, &answers);
	} else if (makes_requests(command, outside, registry)) {
		status = look_before(&before, command, outside, registry);
		if (status == PROGRAM_GOES_ON)
			request_trees(command, outside, registry, &choice, &answers);
	}
	if (status == PROGRAM_GOES_ON)
		status = dump_answered(command, outside, registry, &answers, &before, start);
	forget_before(&before);
	tdt__answers_fini(&answers);
	return status;
}

static int dump_all_registries(FILE *out, void *arg)
{
	struct bt_command *command = arg;
	struct outside outside;
	int status = outside_open(&outside, &command->outside), worst = EXIT_SUCCESS;

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	for (size_t i = 0; i < outside.n_found; i++) {
		worst = worse_status(worst, dump_registry(command, &outside, i));
	}
	outside_close(&outside);
	return worst;
}

/* --- Recordings --------------------------------------------------------------------------- */

static int dump_last(struct bt_command *command, struct last *last)
{
	const struct tdt__task_choice choice = { command->ids, command->n_ids, false };
	struct tdt__findings *findings =
		tdt__last_dump(&last->states, &choice, last->read.modules);
	int status;

	if (findings == NULL)
		return report_no_memory();
	status = print_findings(command, last->read.modules, findings, last);
	tdt__findings_free(findings);
	return status;
}

static int dump_recording(FILE *out, void *arg)
{
	struct bt_command *command = arg;
	struct last last;
	int status = last_open(&last, &command->outside);

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	status = dump_last(command, &last);
	last_close(&last);
	return status;
}

/* --- The command -------------------------------------------------------------------------- */

/* If files of the target make the child crash, no file is opened the next time. */
static int dump_apart(struct bt_command *command)
{
	apart_fn *dump = command->outside.dir != NULL ? dump_recording : dump_all_registries;
	int status = outside_apart(dump, command, &command->outside);

	if (status == -ECANCELED && !command->outside.places.no_files && bound_left(1) > 0) {
		command->outside.places.no_files = command->no_symbols = true;
		status = outside_apart(dump, command, &command->outside);
	}
	return status >= 0 ? status : TDT_TROUBLE;
}

int command_bt(int argc, char **argv)
{
	struct bt_command command = { .outside.print.size = sizeof command.outside.print,
				      .max_requests = 1000 };
	int status = bt_options(&command, argc, argv);

	tdt__terminal_choose(&command.outside.print, stdout);
	if (status == PROGRAM_GOES_ON)
		status = dump_apart(&command);
	free(command.ids);
	return status;
}
