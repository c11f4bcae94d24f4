// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt diff: what has changed between two answers of tdt ps or tdt bt, which were saved as JSON, or
 * which tdt bt gives now and some seconds later.  Saved answers may be damaged or hostile, so they
 * are read in a child process with limits (apart.h).
 */

#include <config.h>

#include "cli/diff.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/read_json.h"
#include "cli/stacks.h"
#include "cli/tdt.h"
#include "tree-printer/forms.h"
#include "tree-printer/terminal.h"

static char diff_name[] = "tdt";

static const struct program diff_program = {
	.name = diff_name,
	.forms = (const char *const[]){ "text", "json", "folded", NULL },
	.help = "Usage: tdt diff [OPTION]... A B\n"
		"       tdt diff --after=TIME [OPTION]... TARGET [TASK]...\n"
		"Compare two answers that tdt bt or tdt ps gave as JSON, the file A before B: "
		"which tasks have not moved in\n"
		"between, and where they wait; at which places there are more tasks than before; "
		"which tasks have come and gone.\n"
		"They may also be two profiles, as JSON or as folded stacks: which stacks have "
		"another share.\n"
		"With --after: ask tdt bt for both, TIME apart.  TARGET is the number or the name "
		"of a process.\n"
		"\n"
		"  --after=TIME      the time between the answers, as 5s\n"
		"  -p, --pid=TARGET  the same as TARGET\n"
		"  --no-request, --max-requests=N, --ptrace, --no-symbols, --debug-dir=DIR\n"
		"                    as for tdt bt\n"
		"  --format=FORM     text (the default), json on one line, or folded: stacks with "
		"both counts\n"
		"  --json            the same as --format=json\n"
		"  --addresses       symbol+0x1f instead of the place in the source\n"
		"  --full-paths      the source's whole path\n"
		"  --full            also the calls in libraries, which are folded otherwise\n"
		"  --plumbing        also the frames of tdt itself\n"
		"  --timeout=TIME    give up after that (default: 60s)\n"
		"  --verbose         say how long each step took\n"
		"  --utf8, --ascii   the lines of the tree (default: as the locale is)\n"
		"  --color=WHEN      auto (the default: on a terminal), always or never\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0, whatever has changed; 2 if something went wrong.\n",
};

struct diff_command {
	struct outside_options outside;
	uint64_t after; /* nanoseconds; 0: there are files */
	char **bt;      /* arguments for tdt bt */
	int n_bt;
	int only_first; /* the number of the one that is for the first answer only */
	const char *name[2]; /* of the files */
	FILE *file[2];
};

/* --- Options ------------------------------------------------------------------------ */

enum {
	OPTION_AFTER = OPTIONS_OWN,
	OPTION_DIFF_NO_REQUEST,
	OPTION_DIFF_MAX_REQUESTS,
	OPTION_DIFF_PTRACE,
	OPTION_DIFF_NO_SYMBOLS
};

static void pass_on(struct diff_command *command, const char *argument)
{
	command->bt[command->n_bt++] = (char *)(uintptr_t)argument;
}

static int pass_on_both(struct diff_command *command, const char *option, const char *value)
{
	pass_on(command, option);
	if (value != NULL)
		pass_on(command, value);
	return PROGRAM_GOES_ON;
}

static int set_after(struct diff_command *command, const char *value)
{
	int status = set_duration(&command->after, value);

	if (status == PROGRAM_GOES_ON && command->after == 0)
		status = program_bad_usage(&diff_program, "no time passes in ", value);
	return status;
}

static int diff_option(struct diff_command *command, int option, const char *value)
{
	switch (option) {
	case OPTION_AFTER:
		return set_after(command, value);
	case OPTION_DIFF_NO_REQUEST:
		return pass_on_both(command, "--no-request", NULL);
	case OPTION_DIFF_MAX_REQUESTS:
		return pass_on_both(command, "--max-requests", value);
	case OPTION_DIFF_PTRACE:
		return pass_on_both(command, "--ptrace", NULL);
	case OPTION_DIFF_NO_SYMBOLS:
		return pass_on_both(command, "--no-symbols", NULL);
	case OPTION_DEBUG_DIR:
		return pass_on_both(command, "--debug-dir", value);
	default:
		return outside_option(&command->outside, option, value);
	}
}

static int diff_files(struct diff_command *command, int argc, char **argv)
{
	if (command->outside.target != NULL || command->n_bt > 1)
		return program_bad_usage(&diff_program,
					 "options for a process need --after=TIME", "");
	if (argc != 2)
		return program_bad_usage(&diff_program,
					 "two files are needed, or --after=TIME and a process", "");
	command->name[0] = argv[0];
	command->name[1] = argv[1];
	return PROGRAM_GOES_ON;
}

static int diff_target(struct diff_command *command, int argc, char **argv)
{
	int status = outside_arguments(&command->outside, &argc, &argv);

	if (status != PROGRAM_GOES_ON)
		return status;
	pass_on_both(command, "--pid", command->outside.target);
	pass_on(command, "--json");
	command->only_first = command->n_bt;
	pass_on(command, "--no-request");
	pass_on(command, "--");
	for (int i = 0; i < argc; i++)
		pass_on(command, argv[i]);
	command->name[0] = "the first answer";
	command->name[1] = "the second answer";
	return PROGRAM_GOES_ON;
}

static int diff_options(struct diff_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		OPTION_FORMAT,
		{ "after", required_argument, NULL, OPTION_AFTER },
		{ "pid", required_argument, NULL, 'p' },
		{ "no-request", no_argument, NULL, OPTION_DIFF_NO_REQUEST },
		{ "max-requests", required_argument, NULL, OPTION_DIFF_MAX_REQUESTS },
		{ "ptrace", no_argument, NULL, OPTION_DIFF_PTRACE },
		{ "no-symbols", no_argument, NULL, OPTION_DIFF_NO_SYMBOLS },
		{ "debug-dir", required_argument, NULL, OPTION_DEBUG_DIR },
		OPTION_OF_ADDRESSES,
		OPTIONS_OF_FRAMES,
		{ "verbose", no_argument, NULL, OPTION_VERBOSE },
		{ "json", no_argument, NULL, OPTION_JSON },
		OPTION_OF_TIMEOUT,
		OPTIONS_OF_ALL,
	};
	int option, status;

	while ((option = getopt_long(argc, argv, "p:", options, NULL)) != -1) {
		status = diff_option(command, option, optarg);
		if (status != PROGRAM_GOES_ON)
			return status;
	}
	return command->after != 0 ? diff_target(command, argc - optind, argv + optind)
				   : diff_files(command, argc - optind, argv + optind);
}

/* --- Asking for the answers --------------------------------------------------------- */

static int run_bt(FILE *out, void *arg)
{
	struct diff_command *command = arg;

	(void)out;
	optind = 0; /* begin anew */
	return command_bt(command->n_bt, command->bt);
}

static FILE *open_memory(void)
{
	int descriptor = memfd_create("tdt-answer", MFD_CLOEXEC);
	FILE *file = descriptor >= 0 ? fdopen(descriptor, "w+") : NULL;

	if (file == NULL && descriptor >= 0)
		close(descriptor);
	return file;
}

/*
 * Have tdt bt write its answer to the file.  The first answer is taken without requests, which
 * might change what is compared.  Returns PROGRAM_GOES_ON or TDT_TROUBLE.
 */
static int ask(struct diff_command *command, FILE **file)
{
	const char *why = "failed";
	char text[64];
	int status;

	*file = open_memory();
	if (*file == NULL)
		return report_no_memory();
	status = do_apart_into(*file, run_bt, command, UINT_MAX, &why);
	if (status >= 0)
		return status == EXIT_SUCCESS ? PROGRAM_GOES_ON : TDT_TROUBLE;
	snprintf(text, sizeof text, "tdt bt %s", status == -ECANCELED ? why : strerror(-status));
	return report_trouble(text);
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = { (time_t)(ns / TDT__SECOND), (long)(ns % TDT__SECOND) };

	while (nanosleep(&left, &left) != 0 && errno == EINTR)
		;
}

static int ask_for_both(struct diff_command *command)
{
	int status = ask(command, &command->file[0]);

	command->bt[command->only_first] = command->bt[command->only_first - 1];
	if (status == PROGRAM_GOES_ON) {
		sleep_ns(command->after);
		status = ask(command, &command->file[1]);
	}
	for (int i = 0; i < 2 && status == PROGRAM_GOES_ON; i++)
		rewind(command->file[i]);
	return status;
}

static int open_both(struct diff_command *command)
{
	for (int i = 0; i < 2; i++) {
		command->file[i] = program_open(&diff_program, &command->name[i]);
		if (command->file[i] == NULL)
			return TDT_TROUBLE;
	}
	return PROGRAM_GOES_ON;
}

static void close_both(struct diff_command *command)
{
	for (int i = 0; i < 2; i++)
		if (command->file[i] != NULL)
			program_close(command->file[i]);
}

/* --- Reading the answers ------------------------------------------------------------ */

/* One of the two files. */
struct diff_side {
	const struct diff_command *command;
	unsigned number; /* 0 or 1 */
	FILE *file;
	struct reader reader;
	struct stacks_side stacks;
	struct dump *dump; /* the answer that was read; NULL: none */
	bool profile;      /* the file is a profile, which was read to its end */
};

static int bad_input(const struct diff_side *side, const char *message)
{
	program_input_failed(&diff_program, side->command->name[side->number], side->reader.line,
			     (long)side->reader.column, message);
	return TDT_TROUBLE;
}

/* Read the next object.  Returns 1; 0 at the end; or -1, and the failure has been reported. */
static int next_object(struct diff_side *side)
{
	struct tdt_trace *trace;
	int result = reader_next_of_both(&side->reader, &trace, &side->dump);

	if (result < 0)
		bad_input(side, side->reader.message);
	if (result == 1 && trace != NULL) {
		tdt_trace_free(trace);
		bad_input(side, "a trace of one task: answers of tdt bt or tdt ps, as JSON, can be "
				"compared");
		return -1;
	}
	return result;
}

/* The rest of a file that begins with a profile has profiles, too. */
static int rest_of_profile(struct diff_side *side)
{
	int result = 1;

	side->profile = true;
	while (result == 1 && side->dump == NULL)
		result = next_object(side);
	if (side->dump != NULL)
		return bad_input(side, "a dump among profiles");
	return result == 0 ? PROGRAM_GOES_ON : TDT_TROUBLE;
}

static int read_folded(struct diff_side *side)
{
	int error = stacks_read_folded(&side->stacks, side->file, &side->reader.line);
	char text[128];

	side->profile = true;
	side->reader.column = 1;
	if (error == 0)
		return PROGRAM_GOES_ON;
	if (error == -ENOMEM)
		return report_no_memory();
	snprintf(text, sizeof text, "%s", error == -EINVAL
		 ? "neither JSON nor a folded stack, a line as a;b;c 12 (go tool pprof -diff_base "
		   "compares profiles for pprof)" : strerror(-error));
	return bad_input(side, text);
}

/* Whether the file begins as JSON does, or is empty. */
static bool is_json(FILE *file)
{
	int byte;

	do
		byte = getc(file);
	while (byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r');
	if (byte != EOF)
		ungetc(byte, file);
	return byte == EOF || byte == '{' || byte == '[';
}

/* Read the next answer, or a whole profile.  Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
static int read_side(struct diff_side *side)
{
	int result;

	if (side->reader.line == 0 && !is_json(side->file))
		return read_folded(side);
	result = next_object(side);
	if (result < 0)
		return TDT_TROUBLE;
	return result == 1 && side->dump == NULL ? rest_of_profile(side) : PROGRAM_GOES_ON;
}

/* Add the answer as folded stacks. */
static int fold_answer(struct diff_side *side)
{
	struct tdt_print_options print = side->command->outside.print;
	const struct tdt_dump_options options = { .size = sizeof options, .print = &print };
	char *text = NULL;
	size_t n = 0;
	FILE *file = open_memstream(&text, &n);
	int error = file != NULL ? tdt_snapshot_print(dump_snapshot(side->dump), file, &options)
				 : -errno;

	if (file != NULL && fclose(file) != 0 && error == 0)
		error = -ENOMEM;
	file = error == 0 && n != 0 ? fmemopen(text, n, "r") : NULL;
	if (file != NULL) {
		error = stacks_read_folded(&side->stacks, file, &side->reader.line);
		fclose(file);
	}
	free(text);
	return error == 0 ? PROGRAM_GOES_ON : report_no_memory();
}

/* --- Comparing ---------------------------------------------------------------------- */

static int output_status(int error)
{
	if (error == -ENOMEM)
		return report_no_memory();
	if (error != 0)
		program_output_failed(&diff_program, -error);
	return error == 0 ? PROGRAM_GOES_ON : TDT_TROUBLE;
}

static int print_stacks(const struct diff_command *command, FILE *file,
			const struct stacks *stacks)
{
	const struct tdt_print_options *print = &command->outside.print;
	struct tdt__out out = { .file = file };
	int error;

	if (print->format == TDT_PRINT_JSON)
		error = stacks_json(&out, stacks);
	else if (print->format == TDT_PRINT_FOLDED)
		error = stacks_folded(&out, stacks, print);
	else
		error = stacks_text(&out, stacks, print);
	return output_status(tdt__out_end(&out, error));
}

static int print_comparison(const struct diff_command *command, FILE *file,
			    const struct dump *before, const struct dump *after)
{
	struct comparison comparison;
	const struct diff_result result = { .comparison = &comparison,
					    .before = dump_snapshot(before),
					    .after = dump_snapshot(after),
					    .print = &command->outside.print };
	uint64_t start = tdt__clock();
	struct tdt__out out = { .file = file };
	int error = compare(&comparison, result.before, result.after);

	report_time(&command->outside, "comparing", start);
	if (error == -EINVAL)
		return report_trouble("the first answer is later than the second one");
	if (error != 0)
		return report_no_memory();
	error = command->outside.print.format == TDT_PRINT_JSON ? diff_json(&out, &result)
								: diff_text(&out, &result);
	comparison_fini(&comparison);
	return output_status(tdt__out_end(&out, error));
}

static int print_folded(struct diff_side side[2], FILE *out)
{
	int status = fold_answer(&side[0]);

	if (status == PROGRAM_GOES_ON)
		status = fold_answer(&side[1]);
	if (status == PROGRAM_GOES_ON)
		status = print_stacks(side->command, out, side->stacks.stacks);
	stacks_fini(side->stacks.stacks);
	return status;
}

/*
 * Compare what comes next in both files.  Returns PROGRAM_GOES_ON, EXIT_SUCCESS if both files have
 * ended, or TDT_TROUBLE.
 */
static int compare_next(struct diff_side side[2], FILE *out)
{
	const struct diff_command *command = side->command;
	uint64_t start = tdt__clock();
	int status = read_side(&side[0]);

	if (status == PROGRAM_GOES_ON)
		status = read_side(&side[1]);
	report_time(&command->outside, "reading the answers", start);
	if (status != PROGRAM_GOES_ON)
		return status;
	if (side[0].profile != side[1].profile)
		return report_trouble("a profile can only be compared with a profile");
	if (side[0].profile)
		return print_stacks(command, out, side->stacks.stacks) == PROGRAM_GOES_ON
			       ? EXIT_SUCCESS : TDT_TROUBLE;
	if (side[0].dump == NULL && side[1].dump == NULL)
		return EXIT_SUCCESS;
	if (side[0].dump == NULL || side[1].dump == NULL)
		return report_trouble("one of the files has more answers than the other");
	return command->outside.print.format == TDT_PRINT_FOLDED
		       ? print_folded(side, out)
		       : print_comparison(command, out, side[0].dump, side[1].dump);
}

static struct diff_side side_of(const struct diff_command *command, struct stacks *stacks,
				unsigned number)
{
	return (struct diff_side){ .command = command,
				   .number = number,
				   .file = command->file[number],
				   .reader = { .file = command->file[number],
					       .lists = true,
					       .profile = stacks_read_profile },
				   .stacks = { stacks, number } };
}

/* A process with several copies of the library has an answer of each. */
static int compare_answers(FILE *out, void *arg)
{
	struct stacks stacks = { 0 };
	struct diff_side side[2] = { side_of(arg, &stacks, 0), side_of(arg, &stacks, 1) };
	int status = PROGRAM_GOES_ON;
	unsigned n = 0;

	for (; status == PROGRAM_GOES_ON; n++) {
		for (int i = 0; i < 2; i++)
			side[i].reader.arg = &side[i].stacks;
		status = compare_next(side, out);
		for (int i = 0; i < 2; i++) {
			dump_free(side[i].dump);
			side[i].dump = NULL;
		}
	}
	stacks_fini(&stacks);
	return status == EXIT_SUCCESS && n == 1 && !side->profile
		       ? report_trouble("the files have no answers") : status;
}

static int compare_apart(struct diff_command *command)
{
	const char *why = "failed";
	char text[64];
	int status = do_apart(compare_answers, command, UINT_MAX, &why);

	if (status >= 0)
		return status;
	if (status != -ECANCELED) {
		program_output_failed(&diff_program, -status);
		return TDT_TROUBLE;
	}
	snprintf(text, sizeof text, "comparing the answers %s", why);
	return report_trouble(text);
}

int command_diff(int argc, char **argv)
{
	struct diff_command command = { .outside = { .program = &diff_program,
						     .print.size = sizeof command.outside.print } };
	int status;

	/* No argument becomes more than two, and some are ours. */
	command.bt = calloc(2 * (size_t)argc + 8, sizeof command.bt[0]);
	if (command.bt == NULL)
		return report_no_memory();
	pass_on(&command, diff_name);
	status = diff_options(&command, argc, argv);
	tdt__terminal_choose(&command.outside.print, stdout);
	outside_bound(&command.outside, command.after);
	if (status == PROGRAM_GOES_ON)
		status = command.after != 0 ? ask_for_both(&command) : open_both(&command);
	if (status == PROGRAM_GOES_ON)
		status = compare_apart(&command);
	close_both(&command);
	free(command.bt);
	return status;
}
