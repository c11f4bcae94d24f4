// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What is known of tasks from their records: of one, or of all. */

#include <config.h>

#include "tasks.h"

#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "clock.h"
#include "handle.h"
#include "options.h"
#include "registry.h"

#define STATES ((1u << TDT_TASK_WAITING) | (1u << TDT_TASK_RUNNING))

static uint64_t since(uint64_t now, uint64_t then)
{
	return then != 0 && now > then ? now - then : 0;
}

static enum tdt_task_state state_of(const struct tdt_record *record)
{
	switch (record->state) {
	case TDT_RECORD_POLLING:
		return TDT_TASK_RUNNING;
	case TDT_RECORD_ENDED:
		return record->outcome == TDT_READY ? TDT_TASK_READY : TDT_TASK_PANICKED;
	default:
		return TDT_TASK_WAITING;
	}
}

void tdt__task_info(struct tdt__task_info *ours, const struct tdt_record *record, uint64_t now)
{
	struct tdt_trace_info *info = &ours->info;

	memcpy(ours->name, record->name, sizeof ours->name);
	ours->wait = (struct tdt_wait){ record->wait_kind, record->wait_object, record->wait_owner };
	*info = (struct tdt_trace_info){
		.size = sizeof *info,
		.id = record->id,
		.name = ours->name[0] != '\0' ? ours->name : NULL,
		.file = (const char *)(uintptr_t)record->file,
		.line = record->line,
		.column = record->column,
		.state = state_of(record),
		.state_ns = since(now, record->since),
		.polls = record->polls,
		.parent = record->parent,
		.woken_ns = since(now, record->woken),
		.woken_by = record->woken_by,
	};
	if (info->state == TDT_TASK_RUNNING)
		info->thread = record->thread;
	if (info->state == TDT_TASK_WAITING && record->wait_count != 0 &&
	    record->wait_polls == (uint32_t)record->polls) {
		info->n_waits = 1;
		info->waits = &ours->wait;
	}
}

int tdt_task_inspect(struct tdt_handle *handle, tdt_task_fn *each, void *arg)
{
	struct tdt__task_info info;
	struct tdt_record record;

	if (handle == NULL || each == NULL) {
		errno = EINVAL;
		return -EINVAL;
	}
	tdt__registry_read(handle, &record);
	tdt__task_info(&info, &record, tdt__clock());
	return each(handle, &info.info, arg);
}

bool tdt__filter_lets(const struct tdt_task_filter *filter, const struct tdt_trace_info *info)
{
	return (filter->states == 0 || (filter->states & 1u << info->state) != 0) &&
	       info->state_ns >= filter->longer_than_ns &&
	       (filter->name == NULL || (info->name != NULL && fnmatch(filter->name, info->name, 0) == 0));
}

int tdt__filter_read(struct tdt_task_filter *filter, const struct tdt_task_filter *theirs)
{
	int error = tdt__options_read(filter, sizeof *filter, theirs);

	if (error == 0 && ((filter->states & ~STATES) != 0 || filter->reserved != 0))
		error = -EINVAL;
	return error;
}

int tdt_tasks(const struct tdt_task_filter *filter, tdt_task_fn *each, void *arg)
{
	struct tdt_task_filter ours;
	struct tdt__cursor cursor = { 0 };
	struct tdt__task_info info;
	struct tdt_record record;
	struct tdt_handle *task;
	uint64_t now;
	int result = each != NULL ? tdt__filter_read(&ours, filter) : -EINVAL;

	if (result != 0) {
		errno = -result;
		return result;
	}
	now = tdt__clock();
	while (result == 0 && (task = tdt__registry_next(&cursor)) != NULL) {
		if (!tdt__registry_read(task, &record) || !tdt__record_is_live(&record))
			continue;
		tdt__task_info(&info, &record, now);
		if (!tdt__filter_lets(&ours, &info.info) || !tdt__handle_ref_if_same(task, record.seq))
			continue;
		result = each(task, &info.info, arg);
		tdt_handle_unref(task);
		now = tdt__clock(); /* that may have taken long */
	}
	return result;
}

struct tdt_handle *tdt_task_find(uint64_t id)
{
	struct tdt__cursor cursor = { 0 };
	struct tdt_handle *task;
	struct tdt_record record;

	while ((task = tdt__registry_next(&cursor)) != NULL)
		if (TDT__PEEK(task->record.id) == id && tdt__registry_read(task, &record) && record.id == id &&
		    tdt__record_is_live(&record) && tdt__handle_ref_if_same(task, record.seq))
			return task;
	errno = ESRCH;
	return NULL;
}
