/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stdint.h>

/*
 * As tdt_recorder_snapshot(), with a pattern (path_pattern.h) in place of the path.  errno may
 * change.
 */
int tdt__recorder_snapshot_by_pattern(const char *pattern, uint64_t since_ns);
