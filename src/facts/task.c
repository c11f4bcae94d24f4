// SPDX-License-Identifier: Apache-2.0 OR MIT
/* From a record to the structs of <tdt/tree.h>. */

#include "facts/task.h"

#include <stddef.h>

#include "facts/record.h"
#include "tree/waits.h"

struct tdt_task_info tdt__task_by_record(const struct tdt__task_said *said, uint64_t now,
					 struct tdt_wait *wait, const struct tdt_wait **list)
{
	const struct tdt_task_record *record = said->record;
	struct tdt_task_info info = {
		.size = sizeof info,
		.id = record->id,
		.name = said->name[0] != '\0' ? said->name : NULL,
		.file = said->file,
		.line = record->line,
		.column = record->column,
		.state = tdt__record_state(record),
		.state_ns = tdt__time_since(now, record->since),
		.polls = record->polls,
		.parent = record->parent,
		.woken_ns = tdt__time_since(now, record->woken),
		.woken_by = record->woken_by,
		.untraced = record->poll == TDT_TASK_RECORD_REPORTED,
		.child = (record->own_hint & TDT__HINT_CHILD) != 0,
		.blocking = (record->own_hint & TDT__HINT_BLOCKING) != 0,
		.aborted = tdt__record_aborted(record) && (record->state != TDT_TASK_RECORD_ENDED ||
							   record->outcome == TDT_PENDING),
	};

	if (info.state == TDT_TASK_RUNNABLE)
		info.state_ns = info.woken_ns;
	if (info.state == TDT_TASK_RUNNING)
		info.thread = record->thread;
	*wait = tdt__wait_of_record(record);
	if (info.state == TDT_TASK_WAITING && said->still && tdt__record_has_wait(record)) {
		*list = wait;
		info.n_waits = 1;
		info.waits = list;
	}
	return info;
}

uint64_t tdt__task_entry(const struct tdt__lock_places *view, const struct tdt_task_record *record,
			 uint64_t callback_poll)
{
	uint64_t fiber = __atomic_load_n(&record->child_state, __ATOMIC_RELAXED),
		 poll = __atomic_load_n(&record->poll, __ATOMIC_RELAXED), entry;

	if (__atomic_load_n(&record->state, __ATOMIC_RELAXED) == TDT_TASK_RECORD_ENDED ||
	    fiber == 0 || (poll != 0 && poll != callback_poll) ||
	    !view->read(view->arg, fiber + offsetof(struct tdt_registry_fiber, entry), &entry,
			sizeof entry))
		return 0;
	return entry;
}

void tdt__task_renew_holder(struct tdt__lock_places *view, const struct tdt_task_info *info)
{
	if (info->n_waits != 0)
		tdt__lock_renew(view, tdt__own_wait(info, 0), info->id);
}
