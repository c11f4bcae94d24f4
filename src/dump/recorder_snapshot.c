// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Writing what was recorded to a file, as it is or as a trace for Perfetto. */

#include "dump/recorder_snapshot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tdt/recorder.h>

#include "base/clock.h"
#include "base/new_file.h"
#include "base/options.h"
#include "base/text.h"
#include "dump/path_pattern.h"
#include "dump/recorder_copy.h"
#include "recording/module_table.h"
#include "recording/read.h"
#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "tree-printer/perfetto.h"

static int print_as_trace(const struct tdt__new_file *file, const struct tdt__recording *recording,
			  const struct tdt__perfetto_options *options)
{
	FILE *out = tdt__new_file_stream(file);
	int error;

	if (out == NULL)
		return -errno;
	error = tdt__perfetto_write(recording, options, out);
	if (fclose(out) != 0 && error == 0)
		error = -errno;
	return error;
}

static int write_as_trace(const struct tdt__new_file *file, const void *block, size_t size,
			  bool gzip)
{
	struct tdt__perfetto_modules names = { .deadline = tdt__clock() + TDT__NAMER_TIME };
	const struct tdt__perfetto_options options = { .gzip = gzip,
						       .names = tdt__perfetto_name,
						       .data = &names };
	struct tdt__recording *recording = NULL;
	int error = tdt__recording_open(&recording, block, size);

	if (error == 0) {
		names.modules = tdt__recorded_module_table(recording);
		error = names.modules != NULL ? print_as_trace(file, recording, &options) : -ENOMEM;
	}
	tdt__modules_unref(names.modules);
	tdt__recording_close(recording);
	return error;
}

static int write_form(const struct tdt__new_file *file, const void *block, size_t size)
{
	if (tdt__ends_with(file->path, ".pftrace"))
		return write_as_trace(file, block, size, false);
	if (tdt__ends_with(file->path, ".pftrace.gz"))
		return write_as_trace(file, block, size, true);
	return tdt__new_file_write(file, block, size);
}

/* The file is made first: a path that cannot be written to takes no copy. */
static int write_snapshot(const char *path, uint64_t since_ns)
{
	struct tdt__new_file file;
	size_t size = 0;
	void *copy;
	int error = tdt__new_file_open(&file, path);

	if (error != 0)
		return error;
	error = tdt__recorder_copy(since_ns, &copy, &size);
	if (error == 0)
		error = write_form(&file, copy, size);
	free(copy);
	return tdt__new_file_close(&file, error);
}

int tdt_recorder_snapshot(const char *path, const struct tdt_recorder_snapshot_options *options)
{
	struct tdt_recorder_snapshot_options ours;
	int saved = errno, error = tdt__options_read(&ours, sizeof ours, options);

	if (error == 0 && ours.flags != 0)
		error = -EINVAL;
	if (error == 0)
		error = write_snapshot(path, ours.since_ns);
	errno = error == 0 ? saved : -error;
	return error;
}

int tdt__recorder_snapshot_by_pattern(const char *pattern, uint64_t since_ns)
{
	char path[PATH_MAX];

	if (!tdt__path_of_pattern(path, pattern, getpid(), time(NULL)))
		return -ENAMETOOLONG;
	return write_snapshot(path, since_ns);
}
