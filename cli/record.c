// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt record: save what the flight recorder of a process has recorded, as a recording, as a trace
 * for Perfetto, or as a summary.
 */

#include <config.h>

#include "cli/record.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/recordings.h"
#include "reader/door.h"
#include "reader/recorded.h"
#include "recording/copy.h"
#include "recording/read.h"
#include "recording/supplement.h"
#include "symbolize/modules.h"
#include "tree-printer/terminal.h"

static char record_name[] = "tdt";

static const struct program record_program = {
	.name = record_name,
	.help = "Usage: tdt record [OPTION]... -o OUT TARGET\n"
		"Save what the flight recorder of a process has recorded: what each task did and "
		"waited for, who woke it,\n"
		"and what was slow.  The process goes on recording meanwhile.  TARGET is the "
		"number or the name of a process\n"
		"that was started with TDT_RECORD=16M, for example.\n"
		"\n"
		"  -p, --pid=TARGET      the same\n"
		"  --core=FILE           read a core file instead of a process\n"
		"  --dir=DIR             read recordings in a directory (TDT_RECORD_DIR): of "
		"several, the newest one of a\n"
		"                        process that was killed; or one file\n"
		"  --exe=FILE            the program of the core file\n"
		"  --sysroot=DIR         where the files of the core file's process lie\n"
		"  --debug-dir=DIR       separate debug files, instead of /usr/lib/debug\n"
		"  -o, --output=OUT      the file to write, by its name: OUT.pftrace for "
		"ui.perfetto.dev, OUT.pftrace.gz the\n"
		"                        same compressed, OUT.json the summary, otherwise the "
		"recording (tdt print --summary)\n"
		"  --summary             print the summary, too\n"
		"  --json                the same, as a JSON object on one line\n"
		"  -d, --duration=TIME   wait for so long, as 10s, and take what was recorded "
		"meanwhile; Ctrl-C ends that\n"
		"  --last=TIME           take only what was recorded last\n"
		"  --no-symbols          look up no names: write modules and offsets\n"
		"  --timeout=TIME        give up after that (default: 60s), and the duration\n"
		"  --verbose             say how long each step took\n"
		"  --utf8, --ascii       the characters of the summary (default: as the locale "
		"is)\n"
		"  --color=WHEN          auto (the default: on a terminal), always or never\n"
		"  --help, --version\n"
		"\n"
		"Exit status: 0; 2 if something went wrong.\n",
};

struct record_command {
	struct outside_options outside;
	const char *out;   /* NULL: no file */
	uint64_t duration; /* 0: do not wait */
	uint64_t last;     /* 0: all that there is */
	bool summary, no_symbols;
};

/* --- Options ------------------------------------------------------------------------------ */

enum { OPTION_LAST = OPTIONS_OWN, OPTION_SUMMARY, OPTION_NAMELESS };

/* 0 stands for a time that was not given. */
static int set_record_time(uint64_t *ns, const char *value)
{
	int status = set_duration(ns, value);

	return status == PROGRAM_GOES_ON && *ns == 0
		       ? program_bad_usage(&record_program, "not a time: ", value)
		       : status;
}

static int record_option(void *arg, int option, const char *value)
{
	struct record_command *command = arg;

	switch (option) {
	case 'o':
		command->out = value;
		return PROGRAM_GOES_ON;
	case 'd':
		return set_record_time(&command->duration, value);
	case OPTION_LAST:
		return set_record_time(&command->last, value);
	case OPTION_SUMMARY:
		command->summary = true;
		return PROGRAM_GOES_ON;
	case OPTION_NAMELESS:
		command->no_symbols = true;
		return PROGRAM_GOES_ON;
	case OPTION_JSON:
		command->summary = true;
		return outside_option(&command->outside, option, value);
	default:
		return outside_option(&command->outside, option, value);
	}
}

static int check_record(const struct record_command *command)
{
	if (command->out == NULL && !command->summary)
		return program_bad_usage(&record_program, "-o OUT or --summary is missing", "");
	if (command->duration != 0 && command->last != 0)
		return program_bad_usage(&record_program, "either --duration or --last", "");
	if (command->duration != 0 && command->outside.target == NULL)
		return program_bad_usage(&record_program,
					 "only a process can be waited for: use --last", "");
	return PROGRAM_GOES_ON;
}

static int record_options(struct record_command *command, int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "duration", required_argument, NULL, 'd' },
		{ "last", required_argument, NULL, OPTION_LAST },
		{ "summary", no_argument, NULL, OPTION_SUMMARY },
		{ "no-symbols", no_argument, NULL, OPTION_NAMELESS },
		OPTION_OF_TIMEOUT,
		OPTIONS_OF_TARGET,
	};
	static const struct command_line line = { .program = &record_program,
						  .letters = "p:o:d:",
						  .options = options,
						  .option = record_option };
	int status = read_command_line(&line, command, &command->outside, &argc, &argv);

	return status == PROGRAM_GOES_ON ? check_record(command) : status;
}

/* --- What was recorded last --------------------------------------------------------------- */

static int read_taken(void *data, uint64_t offset, void *to, size_t n)
{
	const struct taken *taken = data;

	if (offset > taken->size || n > taken->size - offset)
		return -EINVAL;
	memcpy(to, (const char *)taken->block + offset, n);
	return 0;
}

/* Returns 0 or a negative errno. */
static int keep_last(struct taken *taken, uint64_t ns)
{
	const struct tdt_recording *header = taken->block;
	struct tdt__recording_source source = { .read = read_taken,
						.data = taken,
						.bytes = taken->size,
						.now = header->taken };
	unsigned __int128 ticks = ns;
	size_t size;
	void *copy;
	int error;

	if (header->hz != 0)
		ticks = ticks * header->hz / TDT__SECOND;
	if (ticks >= header->taken)
		return 0;
	source.since = header->taken - (uint64_t)ticks;
	error = tdt__recording_copy(&source, &copy, &size);
	if (error != 0)
		return error;
	free(taken->block);
	taken->block = copy;
	taken->size = size;
	return 0;
}

/* --- Writing ------------------------------------------------------------------------------ */

static int open_taken(struct taken *taken, const struct record_command *command)
{
	int error = command->last != 0 ? keep_last(taken, command->last) : 0;

	if (error == 0)
		error = tdt__recording_open(&taken->recording, taken->block, taken->size);
	if (error == -ENOMEM)
		return report_no_memory();
	return error == 0 ? PROGRAM_GOES_ON : report_trouble("the recording is damaged");
}

/* Write what was asked for.  Returns an exit status. */
static int write_wanted(struct taken *taken, const struct record_command *command)
{
	int status;

	bound_more(taken->size);
	status = open_taken(taken, command);

	if (status == PROGRAM_GOES_ON && command->out != NULL)
		status = write_taken(taken, &command->outside, command->out,
				     !command->no_symbols);
	if (status == PROGRAM_GOES_ON && command->summary)
		status = sum_up_taken(taken, &command->outside, !command->no_symbols);
	tdt__recording_close(taken->recording);
	return status == PROGRAM_GOES_ON ? EXIT_SUCCESS : status;
}

/* --- A process or a core file ------------------------------------------------------------- */

/* The registry whose library has recorded.  If there are several, the first one is chosen. */
static const struct tdt__found *choose_registry(const struct outside *outside)
{
	const struct tdt__found *chosen = NULL;
	size_t n = 0;

	for (size_t i = outside->n_found; i-- > 0;) {
		if (outside->found[i].registry.rings == 0)
			continue;
		chosen = &outside->found[i];
		n++;
	}
	if (n > 1)
		report_trouble("several copies of libtdt have recorded: this is the recording of "
			       "one of them");
	return chosen != NULL ? chosen : &outside->found[0];
}

static void open_image(void *data, uint64_t address)
{
	tdt__images_open(data, address);
}

static int take_from_target(struct record_command *command, struct outside *outside)
{
	struct taken taken = { .modules = outside->images.table };
	struct tdt__trouble trouble;
	uint64_t start = tdt__clock();
	int status;

	if (tdt__recorded_copy(&outside->target, &outside->images, choose_registry(outside),
			       &taken.block, &taken.size, &trouble) != 0)
		return tdt__target_is_there(&outside->target) ? report_trouble(trouble.text)
							      : report_ended();
	report_time(&command->outside, "copying the recording", start);
	if (!command->no_symbols)
		tdt__recording_visit_code(taken.block, open_image, &outside->images);
	status = write_wanted(&taken, command);
	free(taken.block);
	return status;
}

/* --- Waiting ------------------------------------------------------------------------------ */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signo)
{
	(void)signo;
	interrupted = 1;
}

static void handle_interrupts(void (*handler)(int signo))
{
	const struct sigaction action = { .sa_handler = handler };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

static void show_progress(uint64_t waited, uint64_t all)
{
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\rrecording: %.0f s of %.0f s (Ctrl-C ends it) ",
			(double)waited / 1e9, (double)all / 1e9);
}

static void clear_progress(void)
{
	if (isatty(STDERR_FILENO))
		fputs("\r\033[K", stderr);
}

#define LOOK_EACH_MS 100

/* Wait for the time to pass, for Ctrl-C, or for the end of the process. */
static void wait_recording(const struct outside *outside, uint64_t duration)
{
	uint64_t start = tdt__clock(), waited = 0;

	handle_interrupts(note_interrupt);
	while (waited < duration && !interrupted && tdt__target_is_there(&outside->target)) {
		uint64_t left_ms = (duration - waited) / 1000000 + 1;

		show_progress(waited, duration);
		poll(NULL, 0, left_ms < LOOK_EACH_MS ? (int)left_ms : LOOK_EACH_MS);
		waited = tdt__clock() - start;
	}
	clear_progress();
	handle_interrupts(SIG_DFL);
}

static int request_recording(struct tdt__door *door, const struct outside *outside,
			     size_t registry, struct tdt__trouble *trouble)
{
	struct tdt_outside_record record = { .on = 1 };
	int error = tdt__door_open(door, &outside->target, &outside->found[registry], trouble);

	if (error != 0)
		return error;
	error = tdt__door_request(door, &record.header, TDT_OUTSIDE_RECORD, sizeof record, trouble);
	if (error == 0)
		return 0;
	tdt__door_close(door);
	return error;
}

/*
 * Have the process record while tdt waits: as long as the connection lasts that is opened here, if
 * it does not record by itself.  Returns PROGRAM_GOES_ON or TDT_TROUBLE.
 */
static int must_record(const struct outside *outside, struct tdt__door *door)
{
	struct tdt__trouble trouble = { "" };
	char text[sizeof trouble + 256];

	for (size_t i = 0; i < outside->n_found; i++)
		if (tdt__recorded_runs(&outside->target, &outside->found[i]))
			return PROGRAM_GOES_ON;
	for (size_t i = 0; i < outside->n_found; i++)
		if (request_recording(door, outside, i, &trouble) == 0)
			return PROGRAM_GOES_ON;
	snprintf(text, sizeof text,
		 "the process does not record: have it start with TDT_RECORD=16M in its "
		 "environment, or call tdt_recorder_start().  It cannot be requested now: %s",
		 trouble.text);
	return report_trouble(text);
}

/* A recording is gone with its process, unless it was in a file. */
static int report_end(const struct outside *outside)
{
	uint64_t rings = choose_registry(outside)->registry.rings;
	const struct tdt__mapping *mapping = tdt__target_mapping(&outside->target, rings);
	char text[512];

	if (mapping == NULL || !mapping->is_file)
		return report_trouble("the process has ended meanwhile, and what it recorded with "
				      "it.  TDT_RECORD_DIR keeps recordings in a directory");
	snprintf(text, sizeof text,
		 "the process has ended meanwhile.  Its recording is still there: --dir=%s",
		 mapping->path);
	return report_trouble(text);
}

/*
 * The modules, the records and the rings are those at the end of the time, so the process is opened
 * again.  If the old one is still there, it is the same one.
 */
static int take_after_waiting(struct record_command *command, const struct outside *before,
			      uint64_t start)
{
	struct outside outside;
	int status;

	if (!tdt__target_is_there(&before->target))
		return report_end(before);
	status = outside_open(&outside, &command->outside);
	if (status != PROGRAM_GOES_ON)
		return status;
	command->last = tdt__clock() - start;
	status = tdt__target_is_there(&before->target) ? take_from_target(command, &outside)
							: report_end(before);
	outside_close(&outside);
	return status;
}

static int wait_and_take(struct record_command *command, struct outside *outside)
{
	uint64_t start = tdt__clock();
	struct tdt__door door = { .connection = -1 };
	int status = must_record(outside, &door);

	if (status != PROGRAM_GOES_ON)
		return status;
	wait_recording(outside, command->duration);
	status = take_after_waiting(command, outside, start);
	tdt__door_close(&door);
	return status;
}

static int record_target(struct record_command *command)
{
	struct outside outside;
	int status = outside_open(&outside, &command->outside);

	if (status != PROGRAM_GOES_ON)
		return status;
	status = command->duration != 0 ? wait_and_take(command, &outside)
					: take_from_target(command, &outside);
	outside_close(&outside);
	return status;
}

/* --- A directory -------------------------------------------------------------------------- */

static int record_directory(struct record_command *command)
{
	struct recording_read read;
	struct taken taken;
	int status;

	if (recording_read_chosen(&record_program, command->outside.dir, &read) != PROGRAM_GOES_ON)
		return TDT_TROUBLE;
	tdt__recording_close(read.recording); /* the block may be replaced */
	read.recording = NULL;
	taken = (struct taken){ .block = read.block, .size = read.size, .modules = read.modules };
	status = write_wanted(&taken, command);
	read.block = taken.block;
	recording_read_free(&read);
	return status;
}

/* --- The command -------------------------------------------------------------------------- */

int command_record(int argc, char **argv)
{
	struct record_command command = { .outside.print.size = sizeof command.outside.print };
	int status = record_options(&command, argc, argv);

	if (status != PROGRAM_GOES_ON)
		return status;
	tdt__terminal_choose(&command.outside.print, stdout);
	outside_bound(&command.outside, command.duration);
	return command.outside.dir != NULL ? record_directory(&command) : record_target(&command);
}
