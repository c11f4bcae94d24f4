// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making a trace of a capture. */

#include "capture/capture_trace.h"

#include "capture/capture.h"
#include "registry/contexts.h"
#include "registry/handle.h"
#include "registry/owners.h"
#include "registry/task_info.h"
#include "symbolize/modules.h"
#include "tree/trace.h"

struct tdt_trace *tdt__capture_trace(const struct tdt_handle *task, struct tdt__capture *capture)
{
	const struct tdt_task_record *record = &task->record;
	struct tdt__modules *modules = NULL;
	struct tdt_task_info info = {
		.size = sizeof info,
		.id = record->id,
		.name = record->name[0] != '\0' ? record->name
						: tdt__entry_name(record, &modules, 0),
		.file = (const char *)(uintptr_t)record->file,
		.line = record->line,
		.column = record->column,
		.parent = record->parent,
		.untraced = record->poll == TDT_TASK_RECORD_REPORTED,
		.child = (TDT__PEEK(record->own_hint) & TDT__HINT_CHILD) != 0,
		.blocking = (TDT__PEEK(record->own_hint) & TDT__HINT_BLOCKING) != 0,
	};
	struct tdt_trace *trace;

	tdt__modules_unref(modules);
	tdt__context_read(task, record, &info.context);
	tdt__facts_say(&capture->facts, &info);
	/* Perhaps it was aborted since the capture; its last poll may have ended it before that. */
	info.aborted = tdt__record_aborted(record) && info.state != TDT_TASK_READY &&
		       info.state != TDT_TASK_PANICKED;
	if (info.aborted != 0)
		info.woken_by = TDT__PEEK(record->woken_by);
	trace = tdt__trace_of(&info, tdt__stacks_copy(&capture->stacks));
	tdt__capture_unref(capture);
	if (trace != NULL)
		tdt__name_owners(trace);
	return trace;
}
