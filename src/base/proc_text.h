/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stddef.h>
#include <sys/types.h>

/*
 * Read a file of the directory (openat(2)), for example "status" of /proc/PID, to its end or until
 * `size` - 1 bytes, and end the text with NUL.  Returns the length or a negative errno; then the
 * text is "", unless a part was read.
 */
ssize_t tdt__proc_text(int directory, const char *name, char *text, size_t size);
