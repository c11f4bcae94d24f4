/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_DUMP_DUMP_FILE_H
#define TDT_SRC_DUMP_DUMP_FILE_H

/* A dump that is appended to a file. */

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Write to `name` the name that `pattern` stands for: each "%p" is replaced by the process id, and
 * everything else stays as it is.  Returns false if the name is too long.
 */
bool tdt__dump_file_name(char name[PATH_MAX], const char *pattern, pid_t process);

/*
 * Dump all tasks, and append the dump to the file that `pattern` stands for: as JSON if the pattern
 * ends in ".json", else as text.  Returns 0 or a negative errno.
 */
int tdt__dump_to_file(const char *pattern);

#endif
