/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The forms in which a recording is written, by tdt record and tdt print. */

#include "cli/recordings.h"
#include "cli/tdt.h"

/*
 * Write it to the file at `path`, in the form that the name of the file ends with: .pftrace,
 * .pftrace.gz, .json (the summary), or anything else: the recording itself.  Returns an exit
 * status.
 */
int write_recording(const struct recording_read *read, const struct options *options,
		    const char *path);

/* Write a trace for Perfetto to the file at `path`, or for "-", to standard output. */
int write_trace(const struct recording_read *read, const struct options *options,
		const char *path);

/* Print the summary, with --rows, --since and --full. */
int write_summary(const struct recording_read *read, const struct options *options);
