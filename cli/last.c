// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The target of a command, and recordings whose tasks are listed or dumped: see last.h. */

#include "cli/last.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "tree-printer/words.h"

/* Read the recording that the options name.  Returns PROGRAM_GOES_ON or TDT_TROUBLE. */
static int open_last(struct last *last, const struct options *options)
{
	uint64_t start = tdt__clock();

	if (recording_read_chosen(options->dir, &last->read) != PROGRAM_GOES_ON)
		return TDT_TROUBLE;
	report_time(options, "reading the recording", start);
	start = tdt__clock();
	recording_name_tasks(&last->read, options);
	if (tdt__last_states_read(&last->states, last->read.recording) != 0) {
		recording_read_free(&last->read);
		return report_no_memory();
	}
	report_time(options, "finding the last states", start);
	return PROGRAM_GOES_ON;
}

/* When the recording ended, in nanoseconds of CLOCK_REALTIME. */
static uint64_t end_of_last(const struct last *last)
{
	return last->states.tasks.now + tdt__recording_real(last->read.recording);
}

void last_title(struct tdt__string *string, const struct last *last)
{
	const struct tdt_recording *header = &last->read.recording->header;

	tdt__string_printf(string, "process %" PRIu32 " ", header->pid);
	tdt__string_quoted(string, header->program);
	tdt__string_printf(string, ", recorded until %s",
			   TDT__WALL_CLOCK(end_of_last(last), true));
}

/* For how long before the end nothing is missing.  False: nothing is missing at all. */
static bool known_before_end(const struct last *last, uint64_t *ns)
{
	uint64_t whole_from = tdt__recording_whole_from(last->read.recording);
	uint64_t end = last->states.tasks.now;

	*ns = end > whole_from ? end - whole_from : 0;
	return whole_from != 0;
}

void last_missing(struct tdt__string *string, const struct last *last)
{
	const struct tdt__tasks *tasks = &last->states.tasks;
	uint64_t ns;
	size_t i = 0;

	while (i < tasks->n && tasks->task[i].member.info.state != TDT_TASK_UNKNOWN)
		i++;
	if (i == tasks->n)
		return;
	if (!known_before_end(last, &ns)) {
		tdt__string_puts(string, "a task that is unknown has done nothing that was "
					 "recorded\n");
		return;
	}
	if (ns == 0) {
		tdt__string_puts(string, "events are missing up to the end");
	} else {
		tdt__string_printf(string, "only the last %s are recorded without a gap",
				   TDT__DURATION(ns));
	}
	tdt__string_puts(string, ": a task that is unknown has done nothing since, and may have "
				 "ended\n");
}

void last_json(struct tdt__json *json, const struct last *last)
{
	uint64_t ns;

	tdt__json_begin(json, "recording", '{');
	tdt__json_string(json, "file", last->read.path);
	tdt__json_string(json, "program", last->read.recording->header.program);
	tdt__json_u64(json, "until_real_ns", end_of_last(last));
	if (known_before_end(last, &ns))
		tdt__json_u64(json, "whole_ns", ns);
	tdt__json_end(json, '}');
}

static int do_registries(FILE *out, void *arg)
{
	const struct work *work = arg;
	struct outside outside;
	int status = outside_open(&outside, work->options), worst = EXIT_SUCCESS;

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	for (size_t i = 0; i < outside.n_found; i++) {
		status = work->registry(work->command, &outside, i);
		worst = worse_status(worst, status);
	}
	outside_close(&outside);
	return worst;
}

static int do_recording(FILE *out, void *arg)
{
	const struct work *work = arg;
	struct last last;
	int status = open_last(&last, work->options);

	(void)out;
	if (status != PROGRAM_GOES_ON)
		return status;
	status = work->recording(work->command, &last);
	tdt__last_states_fini(&last.states);
	recording_read_free(&last.read);
	return status;
}

int work_apart(struct work *work)
{
	bool recording = work->options->dir != NULL && work->recording != NULL;

	return outside_apart(recording ? do_recording : do_registries, work, work->options,
			     work->again);
}

/* The forms for programs say by themselves which process they are of, or need not know. */
static int put_heading(const struct options *options)
{
	struct tdt__string heading = { .options = &options->print };
	struct tdt__out out = { .file = stdout };

	if (options->print.format != TDT_PRINT_TEXT || options->dot)
		return EXIT_SUCCESS;
	tdt__string_puts(&heading, "target ");
	tdt__string_text(&heading, options->target);
	tdt__string_puts(&heading, "\n\n");
	tdt__out_take(&out, &heading);
	return report_output(NULL, tdt__out_end(&out));
}

int work_on_each(struct work *work)
{
	const struct options given = *work->options;
	int worst = EXIT_SUCCESS, status = EXIT_SUCCESS;

	if (given.n_targets <= 1)
		return work_apart(work);
	for (unsigned i = 0; i < given.n_targets; i++) {
		*work->options = given; /* without what was changed for the target before */
		work->options->target = given.targets[i];
		status = put_heading(work->options);
		if (status == EXIT_SUCCESS)
			status = work_apart(work);
		worst = worse_status(worst, status);
	}
	return worst;
}
