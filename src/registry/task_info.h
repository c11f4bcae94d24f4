/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_REGISTRY_TASK_INFO_H
#define TDT_SRC_REGISTRY_TASK_INFO_H

/* What a record says, in the terms of <tdt/tree.h>. */

#include <stdbool.h>

#include <tdt/tasks.h>

struct tdt_record;

/* With room for what the info points to: it must not be moved or copied. */
struct tdt__task_info {
	struct tdt_trace_info info;
	struct tdt_wait wait;
	char name[TDT_TASK_NAME_MAX + 1];
};

/* What is known of the task at `now` (tdt__clock()). */
void tdt__task_info(struct tdt__task_info *info, const struct tdt_record *record, uint64_t now);

/* Read a caller's filter: 0 or a negative errno. */
int tdt__filter_read(struct tdt_task_filter *filter, const struct tdt_task_filter *theirs);

bool tdt__filter_lets(const struct tdt_task_filter *filter, const struct tdt_trace_info *info);

#endif
