/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * What a task is by a copy of its record, in this process, in another one, or in a core file.  What
 * lies elsewhere is read through a view, which has the locks, too (tree/futurelocks.h).
 */

#include <stdbool.h>
#include <stdint.h>

#include <tdt/layout/registry.h>

#include "tree/futurelocks.h"

struct tdt__task_said {
	const struct tdt_task_record *record;
	const char *name; /* as the record has it, borrowed; "": none */
	const char *file; /* borrowed; NULL: unknown */
	bool still;       /* all of the record was read at one moment, so its wait is the task's */
};

/*
 * Set `*info` to what the record says of its task as of `now`.  If it waits, `*wait` becomes what
 * for, without a name, and `*list` points to it.
 */
void tdt__task_by_record(struct tdt_task_info *info, const struct tdt__task_said *said,
			 uint64_t now, struct tdt_wait *wait, const struct tdt_wait **list);

/*
 * The function after which a fiber, or a task of tdt_task_new(), is named that has no name itself;
 * 0: there is none, or it is unknown.  `callback_poll` is that of the registry.  The record need
 * not be a copy.
 */
uint64_t tdt__task_entry(const struct tdt__lock_places *view, const struct tdt_task_record *record,
			 uint64_t callback_poll);

/*
 * Have the main wait of the task name the present holder of its lock.  A task that waits is not
 * polled when its lock passes from one owner to the next.
 */
void tdt__task_renew_holder(struct tdt__lock_places *view, const struct tdt_task_info *info);
