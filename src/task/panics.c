// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The last tasks that panicked.  They lie in the registry (<tdt/layout/registry.h>), so that they
 * can also be read from outside (registry/notes.h).
 */

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include <tdt/panics.h>

#include "base/clock.h"
#include "base/result.h"
#include "capture/capture.h"
#include "capture/judge.h"
#include "host/thread.h"
#include "host/unloads.h"
#include "registry/handle.h"
#include "registry/notes.h"
#include "registry/registry.h"
#include "task/attr.h"
#include "task/panics.h"
#include "watch/last_tree.h"

static _Atomic uint64_t panics; /* how many there were; relaxed: the numbers only have to differ */

/* Without a capture, the task's last watched tree says where it waited before. */
static void fill_tree(struct tdt_registry_panic *panic, const struct tdt_handle *task,
		      const struct tdt__capture *capture)
{
	if (capture == NULL || capture->stacks.leaves == 0) {
		tdt__last_tree_copy(task, &panic->tree, panic->entry, TDT_REGISTRY_PANIC_ENTRIES);
		return;
	}
	tdt__tree_write(&panic->tree, panic->entry, TDT_REGISTRY_PANIC_ENTRIES, capture);
	panic->tree.elsewhere = atomic_load_explicit(&task->elsewhere, memory_order_relaxed);
}

static void fill_panic(struct tdt_registry_panic *panic, const struct tdt_handle *task)
{
	const struct tdt_task_record *record = &task->record;

	panic->when = tdt__now();
	panic->thread = record->thread;
	panic->id = record->id;
	panic->parent = record->parent;
	panic->spawned = record->spawned;
	panic->polls = record->polls;
	panic->poll = record->poll;
	panic->file = tdt__attr_stored_file(record);
	panic->line = record->line;
	panic->column = record->column;
	memcpy(panic->name, record->name, sizeof panic->name);
}

void tdt__panic_note(const struct tdt_handle *task, const struct tdt__capture *capture)
{
	struct tdt_registry_panic ours = { 0 };

	ours.number = atomic_fetch_add_explicit(&panics, 1, memory_order_relaxed) + 1;
	fill_panic(&ours, task);
	fill_tree(&ours, task, capture);
	tdt__note_write(&tdt__panics[ours.number % TDT__PANICS], &ours, sizeof ours);
}

static struct tdt__stacks *stacks_here(void *arg, const struct tdt_registry_tree *tree,
				       const struct tdt_registry_entry *entry, uint32_t room)
{
	struct tdt__stacks *stacks = tdt__tree_stacks(tree, entry);
	struct tdt__unloads count = { 0 };

	(void)arg;
	(void)room;
	if (stacks != NULL)
		tdt__judge(stacks, &count);
	return stacks;
}

static const char *file_here(void *arg, uint64_t address)
{
	(void)arg;
	return (const char *)(uintptr_t)address;
}

struct tdt__past_view tdt__past_here(uint64_t now)
{
	return (struct tdt__past_view){ .stacks = stacks_here, .file = file_here, .now = now };
}

uint64_t tdt__panic_count(void)
{
	return atomic_load_explicit(&panics, memory_order_relaxed);
}

int tdt__panic_trace(uint64_t back, uint64_t now, struct tdt_trace **trace)
{
	const struct tdt__past_view view = tdt__past_here(now);
	uint64_t last = tdt__panic_count();
	struct tdt_registry_panic panic;

	if (back >= last || back >= TDT__PANICS ||
	    !tdt__note_read(&panic, &tdt__panics[(last - back) % TDT__PANICS], sizeof panic,
			    last - back))
		return -ESRCH;
	*trace = tdt__past_panic(&view, &panic);
	return *trace != NULL ? 0 : -ENOMEM;
}

int tdt_panics(tdt_panic_fn *each, void *arg)
{
	uint64_t now = tdt__clock();
	int result = each != NULL ? 0 : -EINVAL;

	for (uint64_t back = 0; result == 0 && back < TDT__PANICS; back++) {
		struct tdt_trace *trace;

		result = tdt__panic_trace(back, now, &trace);
		if (result == -ESRCH) {
			result = 0;
			continue;
		}
		if (result != 0)
			break;
		result = each(trace, arg);
		tdt_trace_free(trace);
		if (result != 0)
			return result;
	}
	return tdt__result(result);
}
