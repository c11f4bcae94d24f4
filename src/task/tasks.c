// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Visiting all tasks, and finding one by its id: <tdt/tasks.h>. */

#include <errno.h>

#include <tdt/tasks.h>

#include "base/clock.h"
#include "base/result.h"
#include "facts/task.h"
#include "registry/handle.h"
#include "registry/registry.h"
#include "registry/task_info.h"
#include "symbolize/modules.h"

int tdt_task_inspect(struct tdt_handle *handle, tdt_task_fn *each, void *arg)
{
	struct tdt__lock_places locks = tdt__locks_here(tdt__clock());
	struct tdt__modules *modules = NULL;
	struct tdt__task_info info;
	struct tdt_task_record record;

	if (handle == NULL || each == NULL)
		return tdt__result(-EINVAL);
	tdt__registry_read(handle, &record);
	tdt__task_info(&info, handle, &record, locks.now);
	tdt__task_renew_holder(&locks, &info.info);
	if (info.info.name == NULL)
		info.info.name = tdt__entry_name(&handle->record, &modules,
						 locks.now + TDT__ENTRY_TIME);
	tdt__modules_unref(modules);
	return each(handle, &info.info, arg);
}

int tdt_tasks(const struct tdt_task_filter *filter, tdt_task_fn *each, void *arg)
{
	struct tdt_task_filter ours;
	struct tdt__cursor cursor = { 0 };
	struct tdt__task_info info;
	struct tdt_task_record record;
	struct tdt__lock_places locks;
	struct tdt__modules *modules = NULL;
	uint64_t deadline = tdt__clock() + TDT__ENTRY_TIME;
	struct tdt_handle *task;
	int result = each != NULL ? tdt__filter_read(&ours, filter) : -EINVAL;

	if (result != 0)
		return tdt__result(result);
	locks = tdt__locks_here(tdt__clock());
	while (result == 0 && (task = tdt__registry_next(&cursor)) != NULL) {
		if (!tdt__registry_read(task, &record) || !tdt__record_is_live(&record))
			continue;
		tdt__task_info(&info, task, &record, locks.now);
		if (info.info.name == NULL)
			info.info.name = tdt__entry_name(&task->record, &modules, deadline);
		if (!tdt__filter_lets(&ours, &info.info) ||
		    !tdt__handle_ref_if_same(task, record.seq))
			continue;
		tdt__task_renew_holder(&locks, &info.info);
		result = each(task, &info.info, arg);
		tdt_handle_unref(task);
		locks = tdt__locks_here(tdt__clock()); /* the callback may have taken long */
	}
	tdt__modules_unref(modules);
	return result;
}

struct tdt_handle *tdt_task_find(uint64_t id)
{
	struct tdt__cursor cursor = { 0 };
	struct tdt_handle *task;
	struct tdt_task_record record;

	while ((task = tdt__registry_next(&cursor)) != NULL)
		if (TDT__PEEK(task->record.id) == id && tdt__registry_read(task, &record) &&
		    record.id == id && tdt__record_is_live(&record) &&
		    tdt__handle_ref_if_same(task, record.seq))
			return task;
	return tdt__nothing(-ESRCH);
}
