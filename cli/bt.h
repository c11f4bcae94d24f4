/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The trees of tasks, as tdt bt prints them, for tdt bt and tdt report. */

#include "cli/last.h"

struct bt_command {
	struct options options;
	struct tdt__task_choice choice;
};

/* Print the tasks of one copy of the library, or of a recording.  Both return an exit status. */
int bt_registry(void *bt_command, struct outside *outside, size_t registry);
int bt_recording(void *bt_command, struct last *last);
