// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The summary of what this process has recorded, made of a copy. */

#include <errno.h>
#include <stdlib.h>

#include <tdt/recorder.h>

#include "base/clock.h"
#include "base/options.h"
#include "dump/recorder_copy.h"
#include "recording/module_table.h"
#include "recording/read.h"
#include "recording/summary.h"
#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "tree-printer/forms.h"
#include "tree-printer/summaries.h"

static size_t rows_wanted(const struct tdt_summary_options *options)
{
	bool json = options->print != NULL && options->print->format == TDT_PRINT_JSON;

	if (options->rows != 0)
		return options->rows;
	return options->full || json ? TDT__SUMMARY_ROWS_FULL : TDT__SUMMARY_ROWS;
}

static int print_summary_of(struct tdt__recording *recording, FILE *out,
			    const struct tdt_summary_options *options)
{
	const struct tdt__summary_limits limits = { .rows = rows_wanted(options),
						    .since = options->since_ns };
	struct tdt__modules *modules = tdt__recorded_module_table(recording);
	uint64_t deadline = tdt__clock() + TDT__NAMER_TIME;
	struct tdt__summary *summary;
	int err = -ENOMEM;

	if (modules == NULL)
		return err;
	tdt__recorded_tasks_name(recording, modules, deadline);
	summary = tdt__summary_new(recording, &limits);
	if (summary != NULL)
		err = tdt__summary_print(summary, out, options->print, options->full != 0, modules,
					 deadline);
	tdt__summary_free(summary);
	tdt__modules_unref(modules);
	return err;
}

static int summarize_own(FILE *out, const struct tdt_summary_options *options)
{
	struct tdt__recording *recording = NULL;
	void *copy = NULL;
	size_t size;
	/* All of it: what is wanted of the past is decided when it is summed up. */
	int err = tdt__recorder_copy(0, &copy, &size);

	if (err == 0)
		err = tdt__recording_open(&recording, copy, size);
	if (err == 0)
		err = print_summary_of(recording, out, options);
	tdt__recording_close(recording);
	free(copy);
	return err;
}

static int read_summary_options(struct tdt_summary_options *ours,
				const struct tdt_summary_options *theirs)
{
	int err = tdt__options_read(ours, sizeof(*ours), theirs);

	if (err != 0)
		return err;
	for (size_t i = 0; i < sizeof(ours->reserved); i++)
		if (ours->reserved[i] != 0)
			return -EINVAL;
	return ours->rows <= TDT__SUMMARY_ROWS_MAX ? 0 : -EINVAL;
}

int tdt_recorder_summary(FILE *out, const struct tdt_summary_options *options)
{
	int saved = errno; /* a part of the work may set errno without an error */
	struct tdt_summary_options ours;
	struct tdt_print_options form;
	int err = read_summary_options(&ours, options);

	if (err == 0) /* wrong options are reported also where there is no recording */
		err = tdt__print_options_read(&form, ours.print, out);

	if (err == 0)
		err = summarize_own(out, &ours);
	errno = err == 0 ? saved : -err;
	return err;
}
