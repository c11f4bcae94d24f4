/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Printing what has names in it, which a child process looks up: the target named their files. */

#include "cli/tdt.h"

struct tdt__modules;

/*
 * Have `print(file, arg)` print to the file at `path`, which is replaced as a whole (NULL: to
 * standard output), in a child process; and if the child fails, or with --no-symbols, here and
 * without names, so that nothing can go wrong.  Nobody else has `modules`.  Returns an exit status
 * after the report of what failed.
 */
int print_named(apart_fn *print, void *arg, struct tdt__modules *modules,
		const struct options *options, const char *path);

/*
 * Report the failure to write to `path` (NULL: standard output), a negative errno.  0: there was
 * none.  Returns an exit status.
 */
int report_output(const char *path, int error);
