// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt record: save what the flight recorder of a process has recorded, as a recording, as a trace
 * for Perfetto, as spans, or as a summary.
 */

#include "cli/recordings.h"
#include "cli/report.h"
#include "cli/tdt.h"
#include "cli/wait.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "reader/door.h"
#include "reader/recorded.h"
#include "recording/copy.h"
#include "recording/read.h"
#include "recording/supplement.h"
#include "tree-printer/terminal.h"

static void record_options(struct options *options, int argc, char **argv)
{
	read_command_line(COMMAND_RECORD, options, &argc, &argv, TARGET_ONE);
	options->summary |= options->print.format == TDT_PRINT_JSON;
	if (options->output == NULL && options->otlp == NULL && !options->summary)
		bad_usage("-o OUT, --otlp=OUT or --summary is missing", "");
	if (options->longer != 0 && options->otlp == NULL)
		bad_usage("--longer needs --otlp", "");
	if (options->duration != 0 && options->last != 0)
		bad_usage("either --duration or --last", "");
	if (options->duration != 0 && options->target == NULL)
		bad_usage("only a process can be waited for: use --last", "");
}

static int read_taken(void *data, uint64_t offset, void *to, size_t n)
{
	const struct recording_read *read = data;

	if (offset > read->size || n > read->size - offset)
		return -EINVAL;
	memcpy(to, (const char *)read->block + offset, n);
	return 0;
}

/* Returns 0 or a negative errno. */
static int keep_last(struct recording_read *read, uint64_t ns)
{
	const struct tdt_recording *header = read->block;
	struct tdt__recording_source source = { .read = read_taken,
						.data = read,
						.bytes = read->size,
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
	free(read->block);
	read->block = copy;
	read->size = size;
	return 0;
}

static int open_taken(struct recording_read *read, const struct options *options)
{
	int error = options->last != 0 ? keep_last(read, options->last) : 0;

	if (error == 0)
		error = tdt__recording_open(&read->recording, read->block, read->size);
	if (error == -ENOMEM)
		return report_no_memory();
	return error == 0 ? PROGRAM_GOES_ON : report_trouble("the recording is damaged");
}

static int write_wanted(struct recording_read *read, const struct options *options)
{
	int status;

	bound_more(read->size);
	status = open_taken(read, options);
	if (status != PROGRAM_GOES_ON)
		return status;
	status = EXIT_SUCCESS;
	if (options->output != NULL)
		status = write_recording(read, options, options->output);
	if (status == EXIT_SUCCESS && options->otlp != NULL)
		status = write_otlp(read, options);
	if (status == EXIT_SUCCESS && options->summary)
		status = write_summary(read, options);
	if (status == EXIT_SUCCESS && options->for_page) {
		recording_name_tasks(read, options);
		status = report_output(NULL, report_timeline(read->recording, stdout));
	}
	tdt__recording_close(read->recording);
	read->recording = NULL;
	return status;
}

/* If there are several, the first one is chosen. */
static const struct tdt__found *choose_registry(const struct outside *outside)
{
	size_t n;
	const struct tdt__found *chosen = outside_recorder(outside, &n);

	if (n > 1)
		report_trouble("several copies of libtdt have recorded: this is the recording of "
			       "one of them");
	return chosen;
}

static void open_image(void *data, uint64_t address)
{
	tdt__images_open(data, address);
}

static int take_from_target(struct options *options, struct outside *outside)
{
	struct recording_read read = { .modules = outside->images.table };
	struct tdt__trouble trouble;
	uint64_t start = tdt__clock();
	int status;

	if (tdt__recorded_copy(&outside->target, &outside->images, choose_registry(outside),
			       &read.block, &read.size, &trouble) != 0)
		return tdt__target_is_there(&outside->target) ? report_trouble("%s", trouble.text)
							      : report_ended();
	report_time(options, "copying the recording", start);
	if (!options->no_symbols)
		tdt__recording_visit_code(read.block, open_image, &outside->images);
	status = write_wanted(&read, options);
	free(read.block);
	return status;
}

#define LOOK_EACH (TDT__SECOND / 10)

static void wait_recording(const struct outside *outside, uint64_t start, uint64_t duration)
{
	uint64_t now = start;

	while (now < start + duration && tdt__target_is_there(&outside->target)) {
		uint64_t left = start + duration - now;

		show_progress("recording", now - start, duration);
		if (!wait_until(now + (left < LOOK_EACH ? left : LOOK_EACH)))
			break;
		now = tdt__clock();
	}
	clear_progress();
	wait_end();
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

	for (size_t i = 0; i < outside->n_found; i++)
		if (tdt__recorded_runs(&outside->target, &outside->found[i]))
			return PROGRAM_GOES_ON;
	for (size_t i = 0; i < outside->n_found; i++)
		if (request_recording(door, outside, i, &trouble) == 0)
			return PROGRAM_GOES_ON;
	return report_trouble("the process does not record: have it start with TDT_RECORD=16M in "
			      "its environment, or call tdt_recorder_start().  It cannot be "
			      "requested now: %s", trouble.text);
}

static int record_directory(struct options *options)
{
	struct recording_read read;
	int status;

	if (recording_read_chosen(options->dir, &read) != PROGRAM_GOES_ON)
		return TDT_TROUBLE;
	tdt__recording_close(read.recording); /* the block may be replaced */
	read.recording = NULL;
	status = write_wanted(&read, options);
	recording_read_free(&read);
	return status;
}

/*
 * A recording is gone with its process, unless it was in a file: a page then has that one, which
 * `dir` of the options names.
 */
static int end_with_process(struct options *options, const struct outside *outside)
{
	uint64_t rings = choose_registry(outside)->registry.rings;
	const struct tdt__mapping *mapping = tdt__target_mapping(&outside->target, rings);
	int status;

	options->has_ended = true;
	if (mapping == NULL || !mapping->is_file)
		return report_trouble("the process has ended meanwhile, and what it recorded "
				      "with it.  TDT_RECORD_DIR keeps recordings in a directory");
	status = report_trouble("the process has ended meanwhile.  Its recording is still there: "
				"--dir=%s",
				mapping->path);
	if (!options->for_page)
		return status;
	options->dir = strdup(mapping->path);
	return options->dir != NULL ? record_directory(options) : report_no_memory();
}

/*
 * The modules, the records and the rings are those at the end of the time, so the process is opened
 * again.  If the old one is still there, it is the same one.
 */
static int take_after_waiting(struct options *options, const struct outside *before,
			      uint64_t start)
{
	struct outside outside;
	int status;

	if (!tdt__target_is_there(&before->target))
		return end_with_process(options, before);
	status = outside_open(&outside, options);
	if (status != PROGRAM_GOES_ON)
		return tdt__target_is_there(&before->target) ? status
							     : end_with_process(options, before);
	options->last = tdt__clock() - start;
	status = tdt__target_is_there(&before->target) ? take_from_target(options, &outside)
						       : end_with_process(options, before);
	outside_close(&outside);
	return status;
}

static int wait_and_take(struct options *options, struct outside *outside)
{
	uint64_t start = tdt__clock();
	struct tdt__door door = { .connection = -1 };
	int status = wait_begin() == 0 ? must_record(outside, &door) : report_no_memory();

	if (status != PROGRAM_GOES_ON && tdt__target_is_there(&outside->target))
		return status;
	wait_recording(outside, start, options->duration);
	status = take_after_waiting(options, outside, start);
	tdt__door_close(&door);
	return status;
}

static int record_target(struct options *options)
{
	struct outside outside;
	int status = outside_open(&outside, options);

	if (status != PROGRAM_GOES_ON)
		return status;
	if (options->duration != 0)
		status = wait_and_take(options, &outside);
	else if (!options->for_page || outside_recorder(&outside, NULL)->registry.rings != 0)
		status = take_from_target(options, &outside);
	else
		status = EXIT_SUCCESS; /* nothing was recorded, and a page does without */
	outside_close(&outside);
	return status;
}

int record_take(struct options *options)
{
	outside_bound(options, options->duration);
	return options->dir != NULL ? record_directory(options) : record_target(options);
}

int command_record(int argc, char **argv)
{
	struct options options = { .max_requests = 0 };

	record_options(&options, argc, argv);
	tdt__terminal_choose(&options.print, stdout);
	return record_take(&options);
}
