/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Lists of frames at which tasks wait (<tdt/integrate/leaf.h>; <tdt/layout/registry.h>, "Lists").
 */

#include "reader/tasks.h"

struct tdt__stacks;

/*
 * Read the list at which the task waits, and what else it waits for there, if its record has a
 * wait; or, of a task of tdt_task_new() that runs, the list where it came from.  Returns the
 * stacks, with one leaf, which the caller frees.  NULL: there is no such list, or it cannot be
 * read, or there is no memory.
 */
struct tdt__stacks *tdt__list_read(struct tdt__tasks *tasks, struct tdt__seen_task *task);

/* Whether the task has no future: it was made by tdt_task_new(), or is only reported. */
static inline bool tdt__is_seen_callback(const struct tdt__tasks *tasks,
					 const struct tdt_task_record *record)
{
	return record->poll == TDT_TASK_RECORD_REPORTED ||
	       (record->poll != 0 && record->poll == tasks->registry.callback_poll);
}
