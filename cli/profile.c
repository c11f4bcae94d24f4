// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt profile: where the tasks of a process spend their time, by many looks at them.
 *
 * All of it happens in a child process with limits (apart.h).  The time between two looks varies,
 * so that the looks do not fall into step with what the process does at regular times: there is
 * one look in each period, at a random moment of it.
 */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/new_file.h"
#include "cli/profile.h"
#include "cli/profile_options.h"
#include "reader/door.h"
#include "reader/recorded.h"
#include "recording/read.h"
#include "symbolize/modules.h"
#include "tree-printer/terminal.h"

/*
 * ns.  Short waits are captured by chance, so the more captures, the truer.  The watch itself makes
 * no more of them than cost 0.5 % of a CPU (tdt/watch.h).
 */
#define WATCH_EACH UINT64_C(10000000)
#define PROFILE_NAMES (20 * TDT__SECOND)
#define MORE_SECONDS 120 /* that there are besides the time of the profile */

/* --- Ending early ------------------------------------------------------------------------- */

/*
 * A byte in this pipe ends the profile.  The parent and the child have it, so it does not matter to
 * which of them a signal is sent.
 */
static int stop_pipe[2];

static void write_stop(int signo)
{
	int error = errno;
	ssize_t written = write(stop_pipe[1], "", 1); /* not if the pipe is full of them */

	(void)signo;
	(void)written;
	errno = error;
}

static int catch_signals(void)
{
	const struct sigaction action = { .sa_handler = write_stop, .sa_flags = SA_RESTART };

	if (pipe2(stop_pipe, O_CLOEXEC | O_NONBLOCK) != 0)
		return -errno;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	return 0;
}

/* Sleep until `time` (tdt__clock()).  False: the user wants an end. */
static bool sleep_to(uint64_t time)
{
	struct pollfd stop = { .fd = stop_pipe[0], .events = POLLIN };
	uint64_t now = tdt__clock(), ns = time > now ? time - now : 0;
	const struct timespec left = { .tv_sec = (time_t)(ns / TDT__SECOND),
				       .tv_nsec = (long)(ns % TDT__SECOND) };

	return ppoll(&stop, 1, &left, NULL) <= 0;
}

/* --- Looking ------------------------------------------------------------------------------ */

struct looking {
	const struct profile_command *command;
	struct tdt__profile *profile;
	struct profile_result *result;
	uint64_t start, end; /* tdt__clock() */
	unsigned short random[3];
};

static void show_profile_progress(const struct looking *looking)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rprofiling: %.0f s of %.0f s (Ctrl-C ends it) ",
			(double)(tdt__clock() - looking->start) / 1e9,
			(double)looking->command->duration / 1e9);
}

static void clear_profile_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

static void begin_looking(struct looking *looking)
{
	struct timespec real;

	clock_gettime(CLOCK_REALTIME, &real);
	looking->result->real =
		(uint64_t)real.tv_sec * TDT__SECOND + (uint64_t)real.tv_nsec;
	looking->start = tdt__clock();
	looking->end = looking->start + looking->command->duration;
	memcpy(looking->random, &looking->start, sizeof looking->random);
}

/*
 * Look once in each period, until the time is over.  If the reader is late, the next look stands
 * for all periods that have passed.  Returns 0 or -ENOMEM.
 */
static int look_in_periods(struct looking *looking)
{
	double period = 1e9 / looking->command->hz;
	uint64_t periods = 0; /* that looks stand for */
	int error = 0;

	while (error == 0) {
		double at = ((double)periods + erand48(looking->random)) * period;
		uint64_t passed;

		show_profile_progress(looking);
		if (!sleep_to(looking->start + (uint64_t)at) || tdt__clock() >= looking->end)
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
	clear_profile_progress();
	return error;
}

/* --- Requests ----------------------------------------------------------------------------- */

/* The requests that are in force while the process is profiled. */
struct profile_requests {
	struct tdt__door door;
	struct tdt__answers answers;
};

static void report_refusal(const struct tdt__trouble *trouble, const char *so)
{
	char text[sizeof trouble->text + 200];

	snprintf(text, sizeof text, "%s.  %s", trouble->text, so);
	report_trouble(text);
}

/* Waits that began under a slower watch than this have a tree by chance only. */
#define WATCH_SLOWEST ((uint64_t)TDT__SECOND)

/*
 * Have the tasks watched, as long as the connection lasts.  If they are watched already, the one
 * that wanted this may go.
 */
static int request_profile_watch(struct profile_requests *requests, struct tdt__profile *profile,
				 struct profile_result *result, struct tdt__trouble *trouble)
{
	struct tdt_outside_watch watch = { .interval_ns = WATCH_EACH };
	int error = tdt__door_request(&requests->door, &watch.header, TDT_OUTSIDE_WATCH,
				      sizeof watch, trouble);

	if (error != 0)
		return error;
	result->watch_ns = watch.interval_ns;
	if (profile->watched_from == UINT64_MAX)
		profile->watched_from =
			tdt__clock() + (uint64_t)result->outside->target.clock_offset;
	return 0;
}

/* Request the trees once: tasks that are not polled meanwhile have no other. */
static int request_profile_trees(const struct profile_command *command,
				 struct profile_requests *requests, struct tdt__profile *profile,
				 struct tdt__trouble *trouble)
{
	const struct tdt__task_choice all = { NULL, 0, true };

	if (command->max_requests == 0)
		return 0;
	profile->answers = &requests->answers;
	return tdt__answers_request(&requests->answers, &requests->door, &all,
				    command->max_requests, TDT__SECOND, trouble);
}

static void make_requests(const struct profile_command *command, struct profile_requests *requests,
			  struct tdt__profile *profile, struct profile_result *result,
			  const struct tdt__found *found)
{
	struct tdt__trouble trouble;
	int error;

	result->watch_ns = found->registry.watch_ns;
	if (result->watch_ns != 0 && result->watch_ns <= WATCH_SLOWEST)
		profile->watched_from = 0;
	error = tdt__door_open(&requests->door, &result->outside->target, found, &trouble);
	if (error == 0)
		error = request_profile_watch(requests, profile, result, &trouble);
	if (error == 0)
		error = request_profile_trees(command, requests, profile, &trouble);
	if (error != 0 && (profile->watched_from != 0 || command->max_requests != 0))
		report_refusal(&trouble,
			       result->watch_ns == 0
				       ? "So the tasks are not watched, and the places "
					 "of few waits are known"
				       : "So tasks that are not polled meanwhile have no place");
}

static void end_requests(struct profile_requests *requests)
{
	if (requests->door.connection >= 0)
		tdt__door_close(&requests->door);
	tdt__answers_fini(&requests->answers);
}

/* --- The recording ------------------------------------------------------------------------ */

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

/* --- Printing ----------------------------------------------------------------------------- */

struct profile_printing {
	struct profile_result *result;
	const struct tdt__new_file *file; /* NULL: standard output */
};

static int print_in_form(struct profile_result *result, FILE *file)
{
	struct tdt__out out = { .file = file };

	switch ((int)result->print->format) {
	case PROFILE_PPROF:
		return profile_pprof(file, result);
	case TDT_PRINT_JSON:
		return tdt__out_end(&out, profile_json(&out, result));
	case TDT_PRINT_FOLDED:
		return tdt__out_end(&out, profile_folded(&out, result));
	default:
		return tdt__out_end(&out, profile_text(&out, result));
	}
}

/* The file to print to.  A child that tried before may have written something. */
static FILE *open_form(const struct profile_printing *printing, FILE *out)
{
	return printing->file != NULL ? tdt__new_file_stream(printing->file) : out;
}

/* An apart_fn: look up the names, and print. */
static int print_profile(FILE *out, void *arg)
{
	const struct profile_printing *printing = arg;
	struct profile_result *result = printing->result;
	struct tdt__profile_places places;
	FILE *file = open_form(printing, out);
	int error;

	if (file == NULL)
		return -errno;
	error = tdt__profile_places_find(&places, &result->profile->sum,
					 tdt__clock() + PROFILE_NAMES);
	if (error == 0) {
		result->places = &places;
		error = print_in_form(result, file);
		tdt__profile_places_fini(&places);
	}
	if (file != out && fclose(file) != 0 && error == 0)
		error = -errno;
	return error;
}

/* Print with names, or if the child that looks them up fails, without them. */
static int print_apart(const struct profile_command *command, struct outside *outside,
		       struct profile_printing *printing)
{
	const char *why = "";
	char text[128];
	int error = -ECANCELED;

	if (!command->no_symbols) {
		tdt__profile_open_images(&printing->result->profile->sum, &outside->images);
		error = do_apart(print_profile, printing, bound_names(), &why);
	}
	if (error != -ECANCELED)
		return error;
	if (!command->no_symbols) {
		snprintf(text, sizeof text, "the look-up of names %s, so there are none", why);
		report_trouble(text);
	}
	tdt__modules_withhold(outside->images.table);
	return print_profile(stdout, printing);
}

static int print_to_file(const struct profile_command *command, struct outside *outside,
			 struct profile_result *result)
{
	struct profile_printing printing = { .result = result };
	struct tdt__new_file file;
	int error;

	if (command->out == NULL)
		return print_apart(command, outside, &printing);
	error = tdt__new_file_open(&file, command->out);
	if (error != 0)
		return error;
	printing.file = &file;
	return tdt__new_file_close(&file, print_apart(command, outside, &printing));
}

static int report_profile_output(const struct profile_command *command, int error)
{
	char text[512];

	if (error == 0)
		return EXIT_SUCCESS;
	if (error == -ENOMEM)
		return report_no_memory();
	if (command->out == NULL) {
		program_output_failed(&outside_program, -error);
		return TDT_TROUBLE;
	}
	snprintf(text, sizeof text, "%s: %s", command->out,
		 error == -EINVAL ? "not a regular file" : strerror(-error));
	return report_trouble(text);
}

/* --- The command -------------------------------------------------------------------------- */

/* The user learns what kept the profile from seeing everything. */
static void report_looks(const struct tdt__profile *profile, const struct profile_result *result)
{
	char text[256];

	if (result->ended)
		report_trouble("the process has ended meanwhile: this is what was seen of it");
	if (profile->damaged)
		report_trouble("not all tasks could be read: the memory that has them is damaged");
	if (profile->sampling.refused == 0)
		return;
	snprintf(text, sizeof text,
		 "stacks of running threads could not be read: perf_event_open(2): %s.  What "
		 "helps: sysctl kernel.perf_event_paranoid=2, or to run tdt as root",
		 strerror(profile->sampling.refused));
	report_trouble(text);
}

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * TDT__SECOND + (uint64_t)now.tv_nsec;
}

/* The cost of the looks since `cpu` (cpu_time()), as a share of one CPU. */
static void report_cost(const struct looking *looking, uint64_t cpu)
{
	uint64_t used = cpu_time() - cpu, passed = tdt__clock() - looking->start;

	if (looking->command->outside.verbose)
		fprintf(stderr, "%s: the looks took %.2f %% of one CPU\n", outside_program.name,
			100 * (double)used / (double)passed);
}

static int look_and_print(const struct profile_command *command, struct outside *outside,
			  struct tdt__profile *profile, struct profile_result *result)
{
	struct profile_requests requests = { .door.connection = -1 };
	struct looking looking = { .command = command, .profile = profile, .result = result };
	struct tdt__profile_times times = { 0 };
	uint64_t cpu;
	int error;

	make_requests(command, &requests, profile, result, &outside->found[0]);
	begin_looking(&looking);
	cpu = cpu_time();
	error = look_in_periods(&looking);
	report_cost(&looking, cpu);
	if (read_recorded_times(&looking, outside, &times))
		result->times = &times;
	end_requests(&requests);
	profile->answers = NULL;
	if (error == 0)
		error = tdt__profile_conclude(&profile->sum);
	if (error == 0) {
		report_looks(profile, result);
		error = print_to_file(command, outside, result);
	}
	tdt__profile_times_fini(&times);
	return report_profile_output(command, error);
}

static int profile_registry(const struct profile_command *command, struct outside *outside)
{
	struct tdt__profile *profile = malloc(sizeof *profile);
	struct profile_result result = { .outside = outside,
					 .profile = profile,
					 .print = &command->outside.print,
					 .states = command->states,
					 .rows = command->rows,
					 .hz = command->hz };
	int status;

	if (profile == NULL || tdt__profile_begin(profile, &outside->target, &outside->images,
						  &outside->found[0]) != 0) {
		free(profile);
		return report_no_memory();
	}
	if (outside->n_found > 1)
		report_trouble("there are several copies of libtdt: this is the profile of one");
	status = look_and_print(command, outside, profile, &result);
	tdt__profile_end(profile);
	free(profile);
	return status;
}

/* An apart_fn. */
static int profile_target(FILE *out, void *arg)
{
	struct profile_command *command = arg;
	struct outside outside;
	int status = outside_open(&outside, &command->outside);

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	status = profile_registry(command, &outside);
	outside_close(&outside);
	return status;
}

int command_profile(int argc, char **argv)
{
	struct profile_command command = { .outside.print.size = sizeof command.outside.print,
					   .duration = 30 * TDT__SECOND,
					   .hz = 19,
					   .rows = 20,
					   .max_requests = 10000 };
	int status = profile_options(&command, argc, argv);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (command.out != NULL && command.outside.print.color == TDT_PRINT_AUTO)
		command.outside.print.color = TDT_PRINT_NO;
	tdt__terminal_choose(&command.outside.print, stdout);
	if (catch_signals() != 0)
		return report_no_memory();
	if (command.outside.timeout == 0)
		command.outside.timeout = MORE_SECONDS;
	outside_bound(&command.outside, command.duration);
	status = outside_apart(profile_target, &command, &command.outside);
	return status >= 0 ? status : TDT_TROUBLE;
}
