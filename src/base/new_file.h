/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * A file that replaces the one at a path, as a whole: it is written under a name of its own, and
 * then renamed.
 *
 *	err = tdt__new_file_open(&file, path);
 *	err = tdt__new_file_write(&file, bytes, size);      or write to file.fd
 *	err = tdt__new_file_close(&file, err);
 */

#include <limits.h>
#include <stddef.h>
#include <stdio.h>

#include "base/write_signals.h"

struct tdt__new_file {
	int fd;
	const char *path;    /* the caller's */
	char name[PATH_MAX]; /* that the file has until it is whole */
	struct tdt__write_signals signals;
};

/*
 * Make the file, for its owner only.  `path` must name nothing yet, or a regular file.  Returns 0
 * or a negative errno.  Until the file is closed, by the same thread, a write beyond RLIMIT_FSIZE
 * is only an error, EFBIG.
 */
int tdt__new_file_open(struct tdt__new_file *file, const char *path);

/* Write all bytes.  Returns 0 or a negative errno. */
int tdt__new_file_write(const struct tdt__new_file *file, const void *bytes, size_t size);

/*
 * Returns a stream to the beginning of the file, which was made empty, or NULL and errno.  Closing
 * it leaves the file open.
 */
FILE *tdt__new_file_stream(const struct tdt__new_file *file);

/*
 * Close the file.  If `error` is 0, put it in its place; otherwise, and if that fails, remove it.
 * Returns `error`, or why the file is not there.
 */
int tdt__new_file_close(struct tdt__new_file *file, int error);
