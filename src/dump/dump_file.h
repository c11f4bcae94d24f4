/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* A dump that is appended to a file. */

/*
 * Dump all tasks, and append the dump to the file that `pattern` (path_pattern.h) stands for: as
 * JSON if the pattern ends in ".json", else as text.  Returns 0 or a negative errno.
 */
int tdt__dump_to_file(const char *pattern);
