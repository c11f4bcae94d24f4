/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_DUMP_RECORDER_SNAPSHOT_H
#define TDT_SRC_DUMP_RECORDER_SNAPSHOT_H

#include <stdint.h>

/*
 * As tdt_recorder_snapshot(), with a pattern (path_pattern.h) in place of the path.  errno may
 * change.
 */
int tdt__recorder_snapshot_by_pattern(const char *pattern, uint64_t since_ns);

#endif
