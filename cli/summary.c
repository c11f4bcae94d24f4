// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What tdt print does with recordings of the flight recorder: see summary.h. */

#include <config.h>

#include "cli/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/new_file.h"
#include "cli/bound.h"
#include "cli/recordings.h"
#include "recording/summary.h"
#include "symbolize/debugfile.h"
#include "symbolize/namer.h"
#include "tree-printer/perfetto_names.h"
#include "tree-printer/summaries.h"

static size_t rows_of(const struct summary_command *command)
{
	if (command->rows != 0)
		return command->rows;
	return command->full || command->print->format == TDT_PRINT_JSON ? TDT__SUMMARY_ROWS_FULL
									 : TDT__SUMMARY_ROWS;
}

static int print_summary(const struct program *program, const struct summary_command *command,
			 const struct recording_read *read)
{
	const struct tdt__summary_limits limits = { .rows = rows_of(command),
						    .since = command->since };
	struct tdt__summary *summary = tdt__summary_new(read->recording, &limits);
	int err = -ENOMEM;

	if (summary != NULL)
		err = tdt__summary_print(summary, stdout, command->print, command->full,
					 read->modules, tdt__clock() + TDT__NAMER_TIME);
	tdt__summary_free(summary);
	return err == 0 ? EXIT_SUCCESS : program_output_failed(program, -err);
}

/* ---- Perfetto ---- */

static bool is_gzip(const char *path)
{
	size_t n = strlen(path);

	return n >= 3 && strcmp(path + n - 3, ".gz") == 0;
}

static int trace_failed(const struct program *program, const char *path, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program->name, path, strerror(error));
	return EXIT_BAD_INPUT;
}

static int write_pftrace(const struct summary_command *command, const struct recording_read *read,
			 FILE *out)
{
	struct tdt__perfetto_modules names = { .modules = read->modules,
					       .deadline = tdt__clock() + TDT__NAMER_TIME };
	const struct tdt__perfetto_options options = { .gzip = is_gzip(command->perfetto),
						       .names = tdt__perfetto_name,
						       .data = &names };

	return tdt__perfetto_write(read->recording, &options, out);
}

static int write_trace_file(const struct summary_command *command,
			    const struct recording_read *read)
{
	struct tdt__new_file file;
	FILE *out;
	int err = tdt__new_file_open(&file, command->perfetto);

	if (err != 0)
		return err;
	bound_unfinished(file.name);
	out = tdt__new_file_stream(&file);
	err = out != NULL ? write_pftrace(command, read, out) : -errno;
	if (out != NULL && fclose(out) != 0 && err == 0)
		err = -errno;
	err = tdt__new_file_close(&file, err);
	bound_unfinished(NULL);
	return err;
}

static int make_trace(const struct program *program, const struct summary_command *command,
		      const struct recording_read *read)
{
	bool standard = strcmp(command->perfetto, "-") == 0;
	int err = standard ? write_pftrace(command, read, stdout) : write_trace_file(command, read);

	if (err == 0)
		return EXIT_SUCCESS;
	return standard ? program_output_failed(program, -err)
			: trace_failed(program, command->perfetto, -err);
}

/* ---- All of it ---- */

/* Say which one of several recordings is read: the trace itself may go to standard output. */
static int run_trace(const struct program *program, const struct summary_command *command,
		     const struct recording_files *files, const struct recording_read *read)
{
	recordings_say_chosen(program, files);
	return make_trace(program, command, read);
}

/* Print the list if there are several recordings, and the summary of the chosen one. */
static int run_summary(const struct program *program, const struct summary_command *command,
		       const struct recording_files *files, const struct recording_read *read)
{
	int err = files->n > 1 ? recordings_print(files, command->print) : 0;

	return err == 0 ? print_summary(program, command, read)
			: program_output_failed(program, -err);
}

static int run_listed(const struct program *program, const struct summary_command *command,
		      const struct recording_files *files)
{
	struct recording_read read;
	int status = recording_read(program, files->file[files->chosen].path, &read);

	if (status != PROGRAM_GOES_ON)
		return status;
	bound_more(read.size);
	status = command->perfetto != NULL ? run_trace(program, command, files, &read)
					   : run_summary(program, command, files, &read);
	recording_read_free(&read);
	return status;
}

int summary_run(const struct program *program, const struct summary_command *command)
{
	struct recording_files files;
	int status;

	bound_time(BOUND_SECONDS);
	status = recordings_list(program, command->path, &files);
	if (status != PROGRAM_GOES_ON)
		return status;
	tdt__debugfile_by_environment();
	status = run_listed(program, command, &files);
	recordings_free(&files);
	return status;
}
