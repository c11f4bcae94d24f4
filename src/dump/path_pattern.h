/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The patterns of files that are written on a signal: dumps, and snapshots of the recorder. */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

/*
 * Write to `name` the path that `pattern` stands for: each "%p" is replaced by the id of the
 * process, and each "%t" by the time in seconds since 1970.  Everything else stays as it is.
 * Returns false if the path is too long.
 */
bool tdt__path_of_pattern(char name[PATH_MAX], const char *pattern, pid_t process, time_t now);
