// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Writing what tdt record has taken.  Names are looked up in a child process, which also writes
 * what has names in it: to the file that the parent has made, or to standard output.
 */

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/new_file.h"
#include "base/text.h"
#include "cli/apart.h"
#include "cli/record.h"
#include "recording/read.h"
#include "recording/summary.h"
#include "symbolize/modules.h"
#include "tree-printer/perfetto_names.h"
#include "tree-printer/summaries.h"

#define NAMES_TIME (20 * TDT__SECOND) /* less than the child is given */

enum recorded_form { FORM_RECORDING, FORM_TRACE, FORM_TRACE_GZIP, FORM_SUMMARY };

struct named_writing {
	const struct tdt__recording *recording;
	struct tdt__modules *modules;
	const struct tdt_print_options *print;
	enum recorded_form form;
	const struct tdt__new_file *file; /* NULL: standard output */
};

static enum recorded_form form_of(const char *path)
{
	return tdt__ends_with(path, ".pftrace")	     ? FORM_TRACE
	       : tdt__ends_with(path, ".pftrace.gz") ? FORM_TRACE_GZIP
	       : tdt__ends_with(path, ".json")	     ? FORM_SUMMARY
						     : FORM_RECORDING;
}

/* --- With names --------------------------------------------------------------------------- */

static int write_perfetto(const struct named_writing *writing, FILE *out)
{
	struct tdt__perfetto_modules names = { .modules = writing->modules,
					       .deadline = tdt__clock() + NAMES_TIME };
	const struct tdt__perfetto_options options = { .gzip = writing->form == FORM_TRACE_GZIP,
						       .names = tdt__perfetto_name,
						       .data = &names };

	return tdt__perfetto_write(writing->recording, &options, out);
}

static int write_summary(const struct named_writing *writing, FILE *out)
{
	bool json = writing->print->format == TDT_PRINT_JSON;
	const struct tdt__summary_limits limits = {
		.rows = json ? TDT__SUMMARY_ROWS_FULL : TDT__SUMMARY_ROWS
	};
	struct tdt__summary *summary = tdt__summary_new(writing->recording, &limits);
	int error = -ENOMEM;

	if (summary != NULL)
		error = tdt__summary_print(summary, out, writing->print, false, writing->modules,
					   tdt__clock() + NAMES_TIME);
	tdt__summary_free(summary);
	return error;
}

static int write_named(const struct named_writing *writing, FILE *out)
{
	return writing->form == FORM_SUMMARY ? write_summary(writing, out)
					     : write_perfetto(writing, out);
}

/* An apart_fn.  A child that tried before may have written something. */
static int write_to_file(FILE *out, void *arg)
{
	const struct named_writing *writing = arg;
	FILE *file;
	int error;

	if (writing->file == NULL)
		return write_named(writing, out);
	file = tdt__new_file_stream(writing->file);
	if (file == NULL)
		return -errno;
	error = write_named(writing, file);
	if (fclose(file) != 0 && error == 0)
		error = -errno;
	return error;
}

/* No file is opened that the target names, so nothing can go wrong here. */
static int write_without_names(struct named_writing *writing)
{
	tdt__modules_withhold(writing->modules);
	return write_to_file(stdout, writing);
}

static int write_apart(struct named_writing *writing, bool names)
{
	const char *why = "";
	char text[128];
	int error = -ECANCELED;

	if (names)
		error = do_apart(write_to_file, writing, bound_names(), &why);
	if (error != -ECANCELED)
		return error;
	if (names) {
		snprintf(text, sizeof text, "the look-up of names %s, so there are none", why);
		report_trouble(text);
	}
	return write_without_names(writing);
}

/* --- Files and standard output ------------------------------------------------------------ */

static int report_writing(const char *path, int error)
{
	char text[512];

	if (error == 0)
		return PROGRAM_GOES_ON;
	if (error == -ENOMEM)
		return report_no_memory();
	snprintf(text, sizeof text, "%s: %s", path,
		 error == -EINVAL ? "not a regular file" : strerror(-error));
	return report_trouble(text);
}

static int write_form_of(const struct taken *taken, const struct tdt_print_options *print,
			 const struct tdt__new_file *file, bool names)
{
	struct tdt_print_options json = *print;
	struct named_writing writing = { .recording = taken->recording,
					 .modules = taken->modules,
					 .print = &json,
					 .form = form_of(file->path),
					 .file = file };

	json.format = TDT_PRINT_JSON;
	return writing.form == FORM_RECORDING
		       ? tdt__new_file_write(file, taken->block, taken->size)
		       : write_apart(&writing, names);
}

int write_taken(const struct taken *taken, const struct outside_options *options, const char *path,
		bool names)
{
	uint64_t start = tdt__clock();
	struct tdt__new_file file;
	int error = tdt__new_file_open(&file, path);

	if (error == 0) {
		bound_unfinished(file.name);
		error = write_form_of(taken, &options->print, &file, names);
		error = tdt__new_file_close(&file, error);
		bound_unfinished(NULL);
	}
	report_time(options, "writing the file", start);
	return report_writing(path, error);
}

int sum_up_taken(const struct taken *taken, const struct outside_options *options, bool names)
{
	struct named_writing writing = { .recording = taken->recording,
					 .modules = taken->modules,
					 .print = &options->print,
					 .form = FORM_SUMMARY };
	uint64_t start = tdt__clock();
	int error = write_apart(&writing, names);

	report_time(options, "the summary", start);
	return report_writing("standard output", error);
}
