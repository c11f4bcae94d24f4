// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The forms in which a recording is written: see recordings.h. */

#include "cli/recordings.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "cli/tdt.h"
#include "recording/summary.h"
#include "tree-printer/perfetto.h"
#include "tree-printer/summaries.h"

struct recording_writing {
	const struct recording_read *read;
	const struct options *options;
	const struct tdt_print_options *print;
	bool gzip;
};

/* These three are apart_fns. */

static int put_block(FILE *out, void *arg)
{
	const struct recording_writing *writing = arg;

	return fwrite(writing->read->block, 1, writing->read->size, out) == writing->read->size
		       ? 0
		       : -errno;
}

static int put_trace(FILE *out, void *arg)
{
	const struct recording_writing *writing = arg;
	struct tdt__perfetto_modules names = { .modules = writing->read->modules,
					       .deadline = naming_until() };
	const struct tdt__perfetto_options options = { .gzip = writing->gzip,
						       .names = tdt__perfetto_name,
						       .data = &names };

	return tdt__perfetto_write(writing->read->recording, &options, out);
}

static int put_summary(FILE *out, void *arg)
{
	const struct recording_writing *writing = arg;
	const struct options *options = writing->options;
	bool full = options->print.full || writing->print->format == TDT_PRINT_JSON;
	const struct tdt__summary_limits limits = {
		.rows = options->rows != 0 ? options->rows
			: full		   ? TDT__SUMMARY_ROWS_FULL
					   : TDT__SUMMARY_ROWS,
		.since = options->since
	};
	struct tdt__summary *summary;
	int error = -ENOMEM;

	recording_name_tasks(writing->read, options);
	summary = tdt__summary_new(writing->read->recording, &limits);
	if (summary != NULL)
		error = tdt__summary_print(summary, out, writing->print, options->print.full,
					   writing->read->modules, naming_until());
	tdt__summary_free(summary);
	return error;
}

static int write_by(apart_fn *put, const struct recording_read *read,
		    const struct options *options, const struct tdt_print_options *print,
		    const char *path)
{
	struct recording_writing writing = { .read = read,
				   .options = options,
				   .print = print,
				   .gzip = path != NULL && tdt__ends_with(path, ".gz") };

	return print_named(put, &writing, read->modules, options, path);
}

int write_recording(const struct recording_read *read, const struct options *options,
		    const char *path)
{
	struct tdt_print_options json = options->print;
	bool trace = tdt__ends_with(path, ".pftrace") || tdt__ends_with(path, ".pftrace.gz");

	json.format = TDT_PRINT_JSON;
	return write_by(trace				? put_trace
			: tdt__ends_with(path, ".json") ? put_summary
							: put_block,
			read, options, &json, path);
}

int write_trace(const struct recording_read *read, const struct options *options,
		const char *path)
{
	return write_by(put_trace, read, options, &options->print,
			strcmp(path, "-") != 0 ? path : NULL);
}

int write_summary(const struct recording_read *read, const struct options *options)
{
	return write_by(put_summary, read, options, &options->print, NULL);
}
