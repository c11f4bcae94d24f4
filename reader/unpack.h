/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Core files that are compressed, as systemd-coredump(8) stores them. */

#include "reader/target.h"

/*
 * Returns `file` if it is not compressed.  Otherwise has the program of the format (zstd, xz, lz4,
 * gzip) decompress it to a file below $TMPDIR or /var/tmp that has no name, closes `file`, and
 * returns that one.  On failure it returns a negative errno, and `trouble` says which commands do
 * the same.  `path` is for these.
 */
int tdt__unpack(int file, const char *path, struct tdt__trouble *trouble);
