/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The process that has made a recording: whether it still runs. */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/recording.h>

/*
 * When the process was started, in clock ticks since boot, as the name of its file says.  0: it
 * cannot be read, or there is no such process.
 */
uint64_t tdt__process_start(uint64_t pid);

/* The PID namespace of this process, by its inode; 0: unknown. */
uint64_t tdt__process_namespace(void);

/*
 * Whether the process is gone that made the recording with this header: its file is named after
 * `pid` and `start`.  Only proof counts, since a file of a process that is gone may be removed.
 */
bool tdt__recorded_process_gone(const struct tdt_recording *header, uint64_t pid, uint64_t start);
