// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Tasks below the tasks that spawned them, and as a graph of who waits for whom.
 *
 * The parents that a target reports may form rings, and may be as deep as there are tasks.  So each
 * task is printed once, nothing recurses, and a task that no root leads to becomes a root.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/index.h"
#include "cli/ps.h"
#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

#define NO_TASK TDT__INDEX_NONE

/* Tasks as nodes of a graph, by their places among those that are shown.  NO_TASK: none. */
struct family {
	const struct listing *listing;
	struct tdt__index by_id;
	struct relative {
		uint32_t parent, first_child, last_child, next;
		bool printed;
	} * task;
};

static uint64_t id_at(const struct family *family, uint32_t task)
{
	return family->listing->shown[task]->member.info.id;
}

/* The first task with this id, or NO_TASK. */
static uint32_t task_with(const struct family *family, uint64_t id)
{
	uint32_t task;

	TDT__INDEX_EACH (task, &family->by_id, tdt__hash_id(id))
		if (id_at(family, task) == id)
			break;
	return task;
}

static void family_fini(struct family *family)
{
	tdt__index_fini(&family->by_id);
	free(family->task);
}

static int family_init(struct family *family, const struct listing *listing)
{
	size_t n = listing->n;

	*family =
	    (struct family){ .listing = listing, .task = calloc(n + 1, sizeof *family->task) };
	if (family->task == NULL || n >= NO_TASK || tdt__index_reserve(&family->by_id, n) != 0) {
		family_fini(family);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		family->task[i] = (struct relative){ NO_TASK, NO_TASK, NO_TASK, NO_TASK, false };
		/* Many tasks with one id would make the index slow. */
		if (task_with(family, id_at(family, i)) == NO_TASK)
			tdt__index_add(&family->by_id, tdt__hash_id(id_at(family, i)), i);
	}
	return 0;
}

static void add_child(struct family *family, uint32_t child)
{
	uint64_t id = family->listing->shown[child]->member.info.parent;
	uint32_t number = id != 0 ? task_with(family, id) : NO_TASK;
	struct relative *parent;

	if (number == NO_TASK || number == child)
		return;
	parent = &family->task[number];
	family->task[child].parent = number;
	if (parent->last_child != NO_TASK)
		family->task[parent->last_child].next = child;
	else
		parent->first_child = child;
	parent->last_child = child;
}

static void tree_line(struct tdt__string *string, const struct family *family, uint32_t task,
		      unsigned depth, struct tdt__indentation *indentation)
{
	const struct tdt__seen_task *shown = family->listing->shown[task];
	const struct tdt_task_info *info = &shown->member.info;

	tdt__indent(string, indentation, depth + 1, family->task[task].next == NO_TASK);
	tdt__color(string, TDT__BOLD);
	tdt__task_name(string, info->id, info->name);
	tdt__color(string, TDT__PLAIN);
	tdt__string_puts(string, " ");
	ps_state(string, shown);
	if (info->state_ns != 0)
		tdt__string_printf(string, " %s", TDT__DURATION_CELL(info->state_ns));
	if (info->n_waits != 0) {
		tdt__string_puts(string, " ");
		tdt__wait_for(string, &shown->wait, info->id, NULL);
	}
	tdt__task_place(string, info);
	tdt__string_puts(string, "\n");
}

/* The next task in depth-first order; NO_TASK: the tree of `root` is done. */
static uint32_t next_in_tree(const struct family *family, uint32_t task, uint32_t root,
			     unsigned *depth)
{
	const struct relative *of = family->task;
	uint32_t child = of[task].first_child;

	if (child != NO_TASK && !of[child].printed) {
		++*depth;
		return child;
	}
	for (; task != root; task = of[task].parent, --*depth)
		if (of[task].next != NO_TASK && !of[of[task].next].printed)
			return of[task].next;
	return NO_TASK;
}

static void write_tree(struct tdt__out *out, struct family *family, uint32_t root)
{
	struct tdt__string string = { .options = family->listing->print };
	struct tdt__indentation indentation;
	unsigned depth = 0;

	for (uint32_t task = root; task != NO_TASK && out->error == 0 && !out->no_memory;
	     task = next_in_tree(family, task, root, &depth)) {
		family->task[task].printed = true;
		tree_line(&string, family, task, depth, &indentation);
		tdt__out_take(out, &string);
	}
}

void ps_tree(struct tdt__out *out, const struct listing *listing)
{
	struct family family;

	if (family_init(&family, listing) != 0) {
		out->no_memory = true;
		return;
	}
	ps_summary(out, listing);
	for (uint32_t i = 0; i < listing->n; i++)
		add_child(&family, i);
	for (uint32_t i = 0; i < listing->n; i++)
		if (family.task[i].parent == NO_TASK)
			write_tree(out, &family, i);
	for (uint32_t i = 0; i < listing->n; i++)
		if (!family.task[i].printed)
			write_tree(out, &family, i);
	family_fini(&family);
}

/* The task that a task waits for; NO_TASK: none, or one that is not shown. */
static uint32_t waits_for(const struct family *family, uint32_t task)
{
	const struct tdt__seen_task *shown = family->listing->shown[task];

	if (shown->member.info.n_waits == 0 || shown->wait.owner == 0)
		return NO_TASK;
	return task_with(family, shown->wait.owner);
}

/* Mark the tasks of a ring: 1, or 2 if it is a deadlock. */
static void mark_rings(const struct family *family, unsigned char *mark)
{
	const struct tdt_snapshot *found = &family->listing->found;

	for (size_t i = 0; i < found->n_cycles; i++)
		for (size_t k = 0; k < found->cycles[i]->n; k++) {
			uint32_t task = task_with(family, found->cycles[i]->tasks[k]->id);

			if (task != NO_TASK)
				mark[task] = found->cycles[i]->deadlock ? 2 : 1;
		}
}

static void dot_node(struct tdt__string *string, const struct family *family, uint32_t task,
		     bool ring)
{
	const struct tdt__seen_task *shown = family->listing->shown[task];
	const struct tdt_task_info *info = &shown->member.info;

	tdt__string_printf(string, "\t\"%" PRIu64 "\" [label=\"%" PRIu64, info->id, info->id);
	if (info->name != NULL) {
		tdt__string_puts(string, " ");
		tdt__string_escape(string, info->name, true, '"');
	}
	tdt__string_puts(string, "\\n");
	ps_state(string, shown);
	tdt__string_printf(string, " %s%s", TDT__DURATION_CELL(info->state_ns),
			   ring ? "\", color=red];\n" : "\"];\n");
}

static void dot_edge(struct tdt__string *string, const struct family *family, uint32_t from,
		     uint32_t to, bool ring)
{
	static const char *const kinds[] = { "",   "task",	"mutex",       "channel", "timer",
					     "io", "", "semaphore", "notification" };
	const struct tdt__seen_task *shown = family->listing->shown[from];

	tdt__string_printf(string, "\t\"%" PRIu64 "\" -> \"%" PRIu64 "\" [label=\"%s",
			   id_at(family, from), id_at(family, to), kinds[shown->wait.kind]);
	if (shown->wait.name[0] != '\0') {
		tdt__string_puts(string, " ");
		tdt__string_escape(string, shown->wait.name, true, '"');
	}
	tdt__string_puts(string, ring ? "\", color=red];\n" : "\"];\n");
}

/* Tasks that neither wait for a task nor are waited for are left out. */
static void dot_graph(struct tdt__string *string, const struct family *family, unsigned char *mark)
{
	size_t n = family->listing->n;
	struct relative *of = family->task; /* the tasks that are printed are in the graph */

	mark_rings(family, mark);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = waits_for(family, i);

		if (to != NO_TASK)
			of[i].printed = of[to].printed = true;
	}
	tdt__string_puts(string, "digraph tasks {\n\tnode [shape=box];\n");
	for (uint32_t i = 0; i < n; i++)
		if (of[i].printed)
			dot_node(string, family, i, mark[i] == 2);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t to = waits_for(family, i);

		if (to != NO_TASK)
			dot_edge(string, family, i, to, mark[i] != 0 && mark[to] != 0);
	}
	tdt__string_puts(string, "}\n");
}

void ps_dot(struct tdt__out *out, const struct listing *listing)
{
	unsigned char *mark = calloc(listing->n + 1, sizeof *mark);
	struct tdt__string string = { 0 };
	struct family family;

	if (mark != NULL && family_init(&family, listing) == 0) {
		dot_graph(&string, &family, mark);
		tdt__out_take(out, &string);
		family_fini(&family);
	} else {
		out->no_memory = true;
	}
	free(mark);
}
