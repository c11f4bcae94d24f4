// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt profile: where the tasks of a process spend their time, by many looks at them.
 *
 * All of it happens in a child process with limits (apart.h).  The time between two looks varies,
 * so that the looks do not fall into step with what the process does at regular times: there is
 * one look in each period, at a random moment of it.
 */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/tdt.h"
#include "cli/profile.h"
#include "cli/wait.h"
#include "reader/door.h"
#include "reader/recorded.h"
#include "recording/read.h"
#include "tree-printer/terminal.h"

/*
 * ns.  Short waits are captured by chance, so the more captures, the truer.  The watch itself makes
 * no more of them than cost 0.5 % of a CPU (tdt/watch.h).
 */
#define WATCH_EACH UINT64_C(10000000)
#define MORE_TIME (120 * TDT__SECOND) /* that there are besides the time of the profile */

static void choose_form(struct options *options)
{
	enum tdt_print_format *format = &options->print.format;

	if (*format != FORM_BY_NAME)
		return;
	*format = TDT_PRINT_TEXT;
	if (options->output == NULL)
		return;
	if (tdt__ends_with(options->output, ".pb.gz"))
		*format = PROFILE_PPROF;
	else if (tdt__ends_with(options->output, ".json"))
		*format = TDT_PRINT_JSON;
	else if (tdt__ends_with(options->output, ".folded"))
		*format = TDT_PRINT_FOLDED;
}

struct looking {
	const struct options *options;
	struct tdt__profile *profile;
	struct profile_result *result;
	/* The requests that are in force meanwhile. */
	struct tdt__door door;
	struct tdt__answers answers;
	uint64_t start, end; /* tdt__clock() */
	unsigned short random[3];
};

static void begin_looking(struct looking *looking)
{
	looking->result->real = tdt__clock_of(CLOCK_REALTIME);
	looking->start = tdt__clock();
	looking->end = looking->start + looking->options->duration;
	memcpy(looking->random, &looking->start, sizeof looking->random);
}

/*
 * Look once in each period, until the time is over.  If the reader is late, the next look stands
 * for all periods that have passed; so there is one look at least.  Returns 0 or -ENOMEM.
 */
static int look_in_periods(struct looking *looking)
{
	double period = 1e9 / (double)looking->options->frequency;
	uint64_t periods = 0; /* that looks stand for */
	int error = 0;

	while (error == 0) {
		double at = ((double)periods + erand48(looking->random)) * period;
		uint64_t passed;

		show_progress("profiling", tdt__clock() - looking->start,
			      looking->options->duration);
		if (!wait_until(looking->start + (uint64_t)at) ||
		    (periods != 0 && tdt__clock() >= looking->end))
			break;
		looking->result->ended = !tdt__target_is_there(&looking->result->outside->target);
		if (looking->result->ended)
			break;
		passed = (uint64_t)((double)(tdt__clock() - looking->start) / period) + 1;
		if (passed <= periods)
			passed = periods + 1;
		error = tdt__profile_look(looking->profile, (double)(passed - periods) * period);
		looking->result->ns += (double)(passed - periods) * period;
		periods = passed;
	}
	clear_progress();
	return error;
}

/* Waits that began under a slower watch than this have a tree by chance only. */
#define WATCH_SLOWEST ((uint64_t)TDT__SECOND)

/*
 * Have the tasks watched, as long as the connection lasts.  If they are watched already, the one
 * that wanted this may go.
 */
static int request_profile_watch(struct looking *looking, struct tdt__trouble *trouble)
{
	struct tdt_outside_watch watch = { .interval_ns = WATCH_EACH };
	int error = tdt__door_request(&looking->door, &watch.header, TDT_OUTSIDE_WATCH,
				      sizeof watch, trouble);

	if (error != 0)
		return error;
	looking->result->watch_ns = watch.interval_ns;
	if (looking->profile->watched_from == UINT64_MAX)
		looking->profile->watched_from =
		    tdt__clock() + (uint64_t)looking->result->outside->target.clock_offset;
	return 0;
}

/* Request the trees once: tasks that are not polled meanwhile have no other. */
static int request_profile_trees(struct looking *looking, struct tdt__trouble *trouble)
{
	const struct tdt__task_choice all = { NULL, 0, true };
	uint64_t most = looking->options->max_requests;

	if (most == 0)
		return 0;
	looking->profile->answers = &looking->answers;
	return tdt__answers_request(&looking->answers, &looking->door, &all, (uint32_t)most,
				    TDT__SECOND, trouble);
}

static void make_requests(struct looking *looking)
{
	struct profile_result *result = looking->result;
	const struct tdt__found *found = &result->outside->found[0];
	struct tdt__trouble trouble;
	int error;

	result->watch_ns = found->registry.watch_ns;
	if (result->watch_ns != 0 && result->watch_ns <= WATCH_SLOWEST)
		looking->profile->watched_from = 0;
	if (looking->options->passive)
		return;
	error = tdt__door_open(&looking->door, &result->outside->target, found, &trouble);
	if (error == 0)
		error = request_profile_watch(looking, &trouble);
	if (error == 0)
		error = request_profile_trees(looking, &trouble);
	if (error != 0 &&
	    (looking->profile->watched_from != 0 || looking->options->max_requests != 0))
		report_trouble("%s.  %s", trouble.text,
			       result->watch_ns == 0
				       ? "So the tasks are not watched, and the places "
					 "of few waits are known"
				       : "So tasks that are not polled meanwhile have no place");
}

static void end_requests(struct looking *looking)
{
	if (looking->door.connection >= 0)
		tdt__door_close(&looking->door);
	looking->profile->answers = NULL;
	tdt__answers_fini(&looking->answers);
}

/*
 * Read what the process has recorded while it was profiled, if it records.  False: there is
 * nothing.
 */
static bool read_recorded_times(struct looking *looking, struct outside *outside,
			  struct tdt__profile_times *times)
{
	uint64_t offset = (uint64_t)outside->target.clock_offset;
	struct tdt__recording *recording;
	struct tdt__trouble trouble;
	void *copy;
	int error;

	if (!tdt__recorded_runs(&outside->target, &outside->found[0]) ||
	    tdt__recorded_open(&outside->target, &outside->images, &outside->found[0], &copy,
			       &recording, &trouble) != 0)
		return false;
	error = tdt__profile_times_read(times, &looking->profile->sum, recording,
					looking->start + offset, tdt__clock() + offset);
	tdt__recording_close(recording);
	free(copy);
	return error == 0;
}

static int print_in_form(struct profile_result *result, FILE *file)
{
	struct tdt__out out = { .file = file };

	switch ((int)result->print->format) {
	case PROFILE_PPROF:
		return profile_pprof(file, result);
	case TDT_PRINT_JSON:
		profile_json(&out, result);
		break;
	case TDT_PRINT_FOLDED:
		profile_folded(&out, result);
		break;
	default:
		profile_text(&out, result);
	}
	return tdt__out_end(&out);
}

/* An apart_fn: look up the names, and print. */
static int print_profile(FILE *out, void *arg)
{
	struct profile_result *result = arg;
	struct tdt__profile_places places;
	int error;

	tdt__profile_name_entries(&result->profile->sum, result->outside->images.table,
				  naming_until());
	error = tdt__profile_places_find(&places, &result->profile->sum, naming_until());
	if (error != 0)
		return error;
	result->places = &places;
	error = print_in_form(result, out);
	tdt__profile_places_fini(&places);
	return error;
}

/* The user learns what kept the profile from seeing everything. */
static void report_looks(const struct tdt__profile *profile, const struct profile_result *result)
{
	if (result->ended)
		report_trouble("the process has ended meanwhile: this is what was seen of it");
	if (profile->damaged)
		report_trouble("not all tasks could be read: the memory that has them is damaged");
	if (profile->sampling.refused == 0)
		return;
	report_trouble("stacks of running threads could not be read: perf_event_open(2): %s.  "
		       "What helps: sysctl kernel.perf_event_paranoid=2, or to run tdt as root",
		       strerror(profile->sampling.refused));
}

/* The cost of the looks since `cpu`, the CPU time then, as a share of one CPU. */
static void report_cost(const struct looking *looking, uint64_t cpu)
{
	uint64_t used = tdt__clock_of(CLOCK_PROCESS_CPUTIME_ID) - cpu,
		 passed = tdt__clock() - looking->start;

	if (looking->options->verbose)
		fprintf(stderr, "%s: the looks took %.2f %% of one CPU\n", program_name,
			100 * (double)used / (double)passed);
}

static int look_and_print(const struct options *options, struct outside *outside,
			  struct tdt__profile *profile, struct profile_result *result)
{
	struct looking looking = {
		.options = options, .profile = profile, .result = result, .door.connection = -1
	};
	struct tdt__profile_times times = { 0 };
	uint64_t cpu;
	int error, status;

	make_requests(&looking);
	begin_looking(&looking);
	cpu = tdt__clock_of(CLOCK_PROCESS_CPUTIME_ID);
	error = look_in_periods(&looking);
	report_cost(&looking, cpu);
	if (read_recorded_times(&looking, outside, &times))
		result->times = &times;
	end_requests(&looking);
	if (error == 0)
		error = tdt__profile_conclude(&profile->sum);
	if (error != 0) {
		status = report_no_memory();
	} else {
		report_looks(profile, result);
		if (!options->no_symbols)
			tdt__profile_open_images(&profile->sum, &outside->images);
		status = print_named(print_profile, result, outside->images.table, options,
				     options->output);
	}
	tdt__profile_times_fini(&times);
	return status;
}

static int profile_registry(const struct options *options, struct outside *outside)
{
	struct tdt__profile *profile = malloc(sizeof *profile);
	struct profile_result result = { .outside = outside,
					 .profile = profile,
					 .print = &options->print,
					 .states = options->states,
					 .rows = options->rows,
					 .hz = (double)options->frequency };
	int status;

	if (profile == NULL || tdt__profile_begin(profile, &outside->target, &outside->images,
						  &outside->found[0]) != 0) {
		free(profile);
		return report_no_memory();
	}
	if (outside->n_found > 1)
		report_trouble("there are several copies of libtdt: this is the profile of one");
	status = look_and_print(options, outside, profile, &result);
	tdt__profile_end(profile);
	free(profile);
	return status;
}

int profile_target(FILE *out, void *arg)
{
	struct options *options = arg;
	struct outside outside;
	int status = outside_open(&outside, options);

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	status = profile_registry(options, &outside);
	outside_close(&outside);
	return status;
}

int command_profile(int argc, char **argv)
{
	struct options options = { .print.format = FORM_BY_NAME,
				   .duration = 30 * TDT__SECOND,
				   .frequency = 19,
				   .rows = 20,
				   .max_requests = 10000 };

	read_command_line(COMMAND_PROFILE, &options, &argc, &argv, TARGET_ONE);
	choose_form(&options);
	if (options.states == 0)
		options.states = (1u << TDT__PROFILE_STATES) - 1;
	if (options.print.format == PROFILE_PPROF && options.output == NULL &&
	    isatty(STDOUT_FILENO))
		bad_usage("pprof's form is not for a terminal: -o OUT.pb.gz", "");
	if (options.output != NULL && options.print.color == TDT_PRINT_AUTO)
		options.print.color = TDT_PRINT_NO;
	tdt__terminal_choose(&options.print, stdout);
	if (wait_begin() != 0)
		return report_no_memory();
	if (options.timeout == 0)
		options.timeout = MORE_TIME;
	outside_bound(&options, options.duration);
	return outside_apart(profile_target, &options, &options, false);
}
