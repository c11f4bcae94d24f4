// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The traces of single tasks of which only a note is left: see past.h. */

#include "facts/past.h"

#include "facts/record.h"
#include "tree/trace.h"

static struct tdt_trace *trace_of_past(const struct tdt__past_view *view,
				       const struct tdt_task_info *info,
				       const struct tdt_registry_tree *tree,
				       const struct tdt_registry_entry *entry, uint32_t room)
{
	struct tdt__stacks *stacks = view->stacks(view->arg, tree, entry, room);

	return stacks != NULL ? tdt__trace_of(info, stacks) : NULL;
}

/* The last tree of a task that panicked may be of an earlier poll than the last one. */
struct tdt_trace *tdt__past_panic(const struct tdt__past_view *view,
				  const struct tdt_registry_panic *panic)
{
	const struct tdt_registry_tree *tree = &panic->tree;
	bool older = tree->n != 0 && tree->polls < panic->polls;
	const struct tdt_task_info info = {
		.size = sizeof info,
		.id = panic->id,
		.name = panic->name[0] != '\0' ? panic->name : NULL, /* the trace cuts it */
		.file = view->file(view->arg, panic->file),
		.line = panic->line,
		.column = panic->column,
		.state = TDT_TASK_PANICKED,
		.state_ns = tdt__time_since(view->now, panic->when),
		.polls = panic->polls,
		.parent = panic->parent,
		.polls_since = older ? panic->polls - tree->polls : 0,
		.age_ns = older ? tdt__time_since(view->now, tree->when) : 0,
	};

	return trace_of_past(view, &info, tree, panic->entry, TDT_REGISTRY_PANIC_ENTRIES);
}

struct tdt_trace *tdt__past_lost(const struct tdt__past_view *view, const struct tdt__losts *losts,
				 size_t i)
{
	const struct tdt_registry_lost *lost = &losts->lost[i];
	struct tdt_wait wait;
	const struct tdt_wait *waits[1];
	const struct tdt_task_info info = tdt__lost_info(
		losts, i, view->file(view->arg, lost->file), view->now, &wait, waits);

	return trace_of_past(view, &info, &lost->tree, lost->entry, TDT_REGISTRY_PANIC_ENTRIES);
}

/* The tree has the one place where the lock was taken, or none. */
struct tdt_trace *tdt__past_orphan(const struct tdt__past_view *view, struct tdt__orphan *orphan)
{
	const struct tdt_task_info info = tdt__orphan_info(orphan);
	uint32_t n = orphan->taken_at != 0;
	const struct tdt_registry_tree tree = { .n = n, .leaves = n };
	const struct tdt_registry_entry entry = { .pc = orphan->taken_at,
						  .parent = TDT_REGISTRY_TOP,
						  .leaves = 1 };

	return trace_of_past(view, &info, &tree, &entry, 1);
}
