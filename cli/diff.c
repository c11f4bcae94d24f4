// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt diff: what has changed between two answers of tdt ps or tdt bt, which were saved as JSON, or
 * which tdt bt gives now and some seconds later.  Saved answers may be damaged or hostile, so they
 * are read in a child process with limits (apart.h).
 */

#include "cli/compare.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/answer.h"
#include "cli/read_json.h"
#include "cli/stacks.h"
#include "symbolize/modules.h"
#include "tree-printer/dumps.h"
#include "tree-printer/terminal.h"

struct diff_command {
	struct options options; /* without `after` there are files */
	struct tdt__task_choice choice;
	const char *name[2]; /* of the files */
	FILE *file[2];
};

static void open_files(struct diff_command *command, int argc, char **argv)
{
	const struct options *options = &command->options;

	if (options->target != NULL || options->debug_dir != NULL || options->debuginfod ||
	    options->no_request || options->ptrace || options->no_symbols)
		bad_usage("options for a process need --after=TIME", "");
	if (argc != 2)
		bad_usage("two files are needed, or --after=TIME and a process", "");
	for (int i = 0; i < 2; i++) {
		command->name[i] = argv[i];
		command->file[i] = program_open(&command->name[i]);
		if (command->file[i] == NULL)
			exit(TDT_TROUBLE);
	}
}

/* One of the two files. */
struct diff_side {
	const struct diff_command *command;
	unsigned number; /* 0 or 1 */
	struct reader reader;
	struct stacks_side stacks;
	struct dump *dump; /* the answer that was read; NULL: none */
	bool profile;      /* the file is a profile, which was read to its end */
};

static int bad_input(const struct diff_side *side, const char *message)
{
	program_input_failed(side->command->name[side->number], side->reader.line,
			     (long)side->reader.column, message);
	return TDT_TROUBLE;
}

/* Read the next object.  Returns 1; 0 at the end; or -1, and the failure has been reported. */
static int next_object(struct diff_side *side)
{
	struct tdt_trace *trace;
	int result = reader_next(&side->reader, &trace, &side->dump);

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
	int error = stacks_read_folded(&side->stacks, side->reader.file, &side->reader.line);
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

/* Read the next answer, or a whole profile.  Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
static int read_side(struct diff_side *side)
{
	int first = side->reader.line == 0 ? reader_skip_space(&side->reader) : '{', result;

	if (first > 0 && first != '{' && first != '[')
		return read_folded(side);
	result = next_object(side);
	if (result < 0)
		return TDT_TROUBLE;
	return result == 1 && side->dump == NULL ? rest_of_profile(side) : PROGRAM_GOES_ON;
}

static int fold_answer(const struct options *command, const struct stacks_side *to,
		       const struct tdt_snapshot *answer)
{
	const struct tdt_dump_options options = { .size = sizeof options,
						  .print = &command->print };
	unsigned long line;
	char *text = NULL;
	size_t n = 0;
	FILE *file = open_memstream(&text, &n);
	int error = file != NULL ? tdt_snapshot_print(answer, file, &options)
				 : -errno;

	if (file != NULL && fclose(file) != 0 && error == 0)
		error = -ENOMEM;
	file = error == 0 && n != 0 ? fmemopen(text, n, "r") : NULL;
	if (file != NULL) {
		error = stacks_read_folded(to, file, &line);
		fclose(file);
	}
	free(text);
	return error == 0 ? PROGRAM_GOES_ON : report_no_memory();
}

static int output_status(int error)
{
	return report_output(NULL, error) == EXIT_SUCCESS ? PROGRAM_GOES_ON : TDT_TROUBLE;
}

static int print_stacks(const struct options *options, FILE *file, const struct stacks *stacks)
{
	const struct tdt_print_options *print = &options->print;
	struct tdt__out out = { .file = file };

	if (print->format == TDT_PRINT_JSON)
		stacks_json(&out, stacks);
	else if (print->format == TDT_PRINT_FOLDED)
		stacks_folded(&out, stacks, print);
	else
		stacks_text(&out, stacks, print);
	return output_status(tdt__out_end(&out));
}

static int print_comparison(const struct options *options, FILE *file,
			    const struct tdt_snapshot *before, const struct tdt_snapshot *after)
{
	struct comparison comparison;
	uint64_t start = tdt__clock();
	struct tdt__out out = { .file = file };
	int error = compare(&comparison, before, after);

	report_time(options, "comparing", start);
	if (error == -EINVAL)
		return report_trouble("the first answer is later than the second one");
	if (error != 0)
		return report_no_memory();
	if (options->print.format == TDT_PRINT_JSON)
		diff_json(&out, &comparison);
	else
		diff_text(&out, &comparison, &options->print);
	comparison_fini(&comparison);
	return output_status(tdt__out_end(&out));
}

static int print_folded(const struct options *options, FILE *file,
			const struct tdt_snapshot *before, const struct tdt_snapshot *after)
{
	struct stacks stacks = { 0 };
	int status = fold_answer(options, &(struct stacks_side){ &stacks, 0 }, before);

	if (status == PROGRAM_GOES_ON)
		status = fold_answer(options, &(struct stacks_side){ &stacks, 1 }, after);
	if (status == PROGRAM_GOES_ON)
		status = print_stacks(options, file, &stacks);
	stacks_fini(&stacks);
	return status;
}

static int print_changes(const struct options *options, FILE *file,
			 const struct tdt_snapshot *before, const struct tdt_snapshot *after)
{
	return options->print.format == TDT_PRINT_FOLDED
		       ? print_folded(options, file, before, after)
		       : print_comparison(options, file, before, after);
}

/* The process at one time, and the answers of the copies of the library in it. */
struct moment {
	struct outside outside;
	struct answer answers[TDT__REGISTRIES_MAX];
	size_t n;
};

static void end_moment(struct moment *moment)
{
	while (moment->n > 0)
		answer_fini(&moment->answers[--moment->n]);
	outside_close(&moment->outside);
}

/* Returns PROGRAM_GOES_ON, and the caller ends the moment; or TDT_TROUBLE. */
static int take_moment(struct moment *moment, const struct diff_command *command,
		       const struct options *options)
{
	int status = outside_open(&moment->outside, options);

	moment->n = 0;
	if (status != PROGRAM_GOES_ON)
		return status;
	if (command->options.no_symbols)
		tdt__modules_withhold(moment->outside.images.table);
	while (moment->n < moment->outside.n_found && status == PROGRAM_GOES_ON) {
		status = answer_take(&moment->answers[moment->n], options,
				     &command->choice, &moment->outside, moment->n);
		if (status == PROGRAM_GOES_ON && moment->answers[moment->n++].ended)
			status = report_ended();
	}
	if (status != PROGRAM_GOES_ON)
		end_moment(moment);
	return status;
}

static int compare_moments(const struct diff_command *command, FILE *out,
			   const struct moment *before, const struct moment *after)
{
	int status = PROGRAM_GOES_ON;
	uint64_t unnamed = 0;

	if (before->n != after->n)
		return report_trouble("one of the answers has more copies of the library");
	for (size_t i = 0; i < after->n && status == PROGRAM_GOES_ON; i++) {
		const struct tdt_snapshot *then = &before->answers[i].findings->public,
					  *now = &after->answers[i].findings->public;

		tdt__snapshot_name(then, naming_until(), &unnamed);
		tdt__snapshot_name(now, naming_until(), &unnamed);
		status = print_changes(&command->options, out, then, now);
	}
	return status == PROGRAM_GOES_ON ? EXIT_SUCCESS : status;
}

/* An apart_fn. */
static int compare_twice(FILE *out, void *arg)
{
	static struct moment before, after;
	const struct diff_command *command = arg;
	/* Requests of the first moment might change what is compared. */
	struct options unasked = command->options;
	const struct timespec time = tdt__timespec(command->options.after);
	int status;

	unasked.max_requests = 0;
	status = take_moment(&before, command, &unasked);

	if (status != PROGRAM_GOES_ON)
		return status;
	nanosleep(&time, NULL);
	status = take_moment(&after, command, &command->options);
	if (status == PROGRAM_GOES_ON) {
		status = compare_moments(command, out, &before, &after);
		end_moment(&after);
	}
	end_moment(&before);
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
	report_time(&command->options, "reading the answers", start);
	if (status != PROGRAM_GOES_ON)
		return status;
	if (side[0].profile != side[1].profile)
		return report_trouble("a profile can only be compared with a profile");
	if (side[0].profile)
		return print_stacks(&command->options, out, side->stacks.stacks) == PROGRAM_GOES_ON
			       ? EXIT_SUCCESS : TDT_TROUBLE;
	if (side[0].dump == NULL && side[1].dump == NULL)
		return EXIT_SUCCESS;
	if (side[0].dump == NULL || side[1].dump == NULL)
		return report_trouble("one of the files has more answers than the other");
	return print_changes(&command->options, out, dump_snapshot(side[0].dump),
			     dump_snapshot(side[1].dump));
}

static struct diff_side side_of(const struct diff_command *command, struct stacks *stacks,
				unsigned number)
{
	return (struct diff_side){ .command = command,
				   .number = number,
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

static int compare_answers_apart(struct diff_command *command)
{
	const char *why = "failed";
	int status = do_apart(stdout, compare_answers, command, UINT_MAX, &why);

	if (status >= 0)
		return status;
	if (status != -ECANCELED)
		return output_status(status);
	return report_trouble("comparing the answers %s", why);
}

static int diff_twice(struct diff_command *command, int argc, char **argv)
{
	int status;

	take_target(&command->options, &argc, &argv, TARGET_AND_MORE);
	read_choice(&command->choice, argc, argv);
	outside_bound(&command->options, command->options.after);
	status = outside_apart(compare_twice, command, &command->options, true);
	free((void *)(uintptr_t)command->choice.ids);
	return status;
}

int command_diff(int argc, char **argv)
{
	struct diff_command command = { .options.max_requests = 1000 };
	int status;

	options_read(COMMAND_DIFF, &command.options, &argc, &argv);
	tdt__terminal_choose(&command.options.print, stdout);
	if (command.options.after != 0)
		return diff_twice(&command, argc, argv);
	open_files(&command, argc, argv);
	outside_bound(&command.options, 0);
	status = compare_answers_apart(&command);
	for (int i = 0; i < 2; i++)
		program_close(command.file[i]);
	return status;
}
