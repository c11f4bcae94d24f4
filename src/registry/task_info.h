/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* From a record to the structs of <tdt/tree.h>; and which tasks match a caller's filter. */

#include <stdbool.h>

#include <tdt/tasks.h>

#include "tree/futurelocks.h"

struct tdt_handle;
struct tdt__modules;
struct tdt_task_record;

/* The struct has room for what `info` points to, so it must not be moved or copied. */
struct tdt__task_info {
	struct tdt_task_info info;
	struct tdt_wait wait;
	const struct tdt_wait *main_wait; /* points to it */
	char name[TDT_TASK_NAME_MAX + 1];
};

/*
 * Set `info` to what `record`, a copy of the record of `task`, says about the task, as of `now`
 * (tdt__clock()).  The name of what the task waits for is read from the host's memory.
 */
void tdt__task_info(struct tdt__task_info *info, const struct tdt_handle *task,
		    const struct tdt_task_record *record, uint64_t now);

/* Read the name of what a leaf of the task waits for, by a copy of its record; "": none. */
void tdt__wait_name_read(char copy[TDT_WAIT_NAME_MAX + 1], const struct tdt_handle *task,
			 const struct tdt_task_record *record);

/*
 * See tdt__task_entry().  `record` is the task's own: tdt__registry_read() does not copy all of it.
 */
uint64_t tdt__entry_of(const struct tdt_task_record *record);

/* How long a view of tasks waits for names of functions; a later view has those that come later. */
#define TDT__ENTRY_TIME (TDT__SECOND / 10)

/*
 * A fiber, or a task of tdt_task_new(), without a name is called by the function that it runs.  The
 * name lives as long as the process; NULL: it is unknown, by `deadline`, or there is none.
 * `record` is the task's own.  `*modules`, at first NULL, belongs to the caller, who may use it
 * again.
 */
const char *tdt__entry_name(const struct tdt_task_record *record, struct tdt__modules **modules,
			    uint64_t deadline);

/* Where locks of this process lie, as of `now`. */
struct tdt__lock_places tdt__locks_here(uint64_t now);

/* Copy a caller's filter, and check it.  Returns 0 or a negative errno. */
int tdt__filter_read(struct tdt_task_filter *filter, const struct tdt_task_filter *theirs);

bool tdt__filter_lets(const struct tdt_task_filter *filter, const struct tdt_task_info *info);
