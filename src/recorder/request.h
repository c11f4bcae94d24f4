/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* What a request to record needs and may lack: its directory, and words for its author. */

#include <limits.h>

/*
 * Find the directory `dir`, and make its last component if that is missing.  `path` becomes its
 * absolute path, without symbolic links.  The last component must not be a symbolic link: whoever
 * may replace it would say where files are made.  Returns 0 or a negative errno.
 */
int tdt__record_dir(char path[PATH_MAX], const char *dir);

/*
 * Say on standard error, in one line, that the environment's request failed: its author is at a
 * terminal or reads a journal.  `variable`: what is at fault; `error`: a negative errno; `instead`:
 * what happens now.  Nothing is said if standard error is another file than when the library was
 * loaded, as that of a daemon is, or if it is not ready.
 */
void tdt__record_say(const char *variable, int error, const char *instead);
