// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Folded stacks, from which flame graphs are made.  Each frame in which leaves wait gives a line:
 * the task, then the frames from the outermost to the innermost with `;` between them, then the
 * number of leaves.  The number counts the leaves of one task, or of all tasks that share the tree.
 */

#include "forms.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dumps.h"
#include "frame.h"
#include "view.h"

static void frame(struct tdt__string *string, const struct tdt__row *row)
{
	size_t at;

	tdt__string_puts(string, ";");
	at = string->n;
	if (row->node == NULL)
		tdt__string_puts(string, "...");
	else
		tdt__frame_name(string, tdt_node_frame(row->node));
	tdt__string_protect(string, at);
}

static void count(struct tdt__out *out, struct tdt__string *string, uint64_t leaves)
{
	size_t n = string->n;

	tdt__string_printf(string, " %" PRIu64 "\n", leaves);
	if (!string->failed)
		tdt__out_add(out, string->bytes, string->n);
	string->n = n;
}

/*
 * Print the stacks of a tree that `tasks` tasks share.  `task` is the first frame of each stack,
 * already escaped.
 */
static void folded_stacks(struct tdt__out *out, const struct tdt__string *task, uint64_t tasks,
			  const struct tdt_node *root, const struct tdt_print_options *options)
{
	struct tdt__string string = { .options = options }; /* from the task to the current row */
	struct tdt__view view;
	size_t *end; /* of each row: where its frame ends in `string` */

	if (task->failed || tdt__view_make(&view, root, options, NULL) != 0) {
		out->no_memory = true;
		return;
	}
	end = calloc(view.n, sizeof(*end));
	string.failed = end == NULL;
	if (end != NULL) {
		tdt__string_add(&string, task->bytes, task->n);
		tdt__string_protect(&string, 0);
		end[0] = string.n;
	}
	for (uint32_t i = 1; i < view.n && !string.failed && out->error == 0; i++) {
		string.n = end[view.row[i].parent];
		frame(&string, &view.row[i]);
		end[i] = string.n;
		if (view.row[i].leaves != 0)
			count(out, &string, view.row[i].leaves * tasks);
	}
	out->no_memory |= string.failed;
	tdt__string_free(&string);
	free(end);
	free(view.row);
}

/* The name that all tasks of the group have.  NULL: their names differ, or one has none. */
static const char *shared_name(const struct tdt_snapshot_group *group)
{
	const char *name = group->tasks[0]->name;

	for (size_t i = 1; i < group->n && name != NULL; i++)
		if (group->tasks[i]->name == NULL || strcmp(group->tasks[i]->name, name) != 0)
			name = NULL;
	return name;
}

static void first_frame(struct tdt__string *string, const struct tdt_snapshot_group *group)
{
	const char *name = shared_name(group);

	string->n = 0;
	if (name != NULL && name[0] != '\0')
		tdt__string_text(string, name);
	else if (group->n == 1)
		tdt__string_printf(string, "task %" PRIu64, group->tasks[0]->id);
	else
		tdt__string_puts(string, "tasks");
}

void tdt__print_folded(struct tdt__out *out, const struct tdt_trace *trace,
		       const struct tdt_node *root, const struct tdt_print_options *options)
{
	const struct tdt_task_info *info = tdt_trace_info(trace);
	const struct tdt_snapshot_group one = { .tasks = &info, .n = 1 };
	struct tdt__string name = { .options = options };

	first_frame(&name, &one);
	folded_stacks(out, &name, 1, root, options);
	tdt__string_free(&name);
}

void tdt__dump_folded(struct tdt__out *out, const struct tdt__dump *dump)
{
	struct tdt__string name = { .options = dump->options };

	for (size_t i = 0; i < dump->snapshot->n_groups && out->error == 0; i++) {
		const struct tdt_snapshot_group *group = dump->snapshot->groups[i];
		const struct tdt_node *root =
		    group->trace != NULL ? tdt_trace_root(group->trace) : NULL;

		out->no_memory |= group->trace != NULL && root == NULL;
		if (root == NULL)
			continue;
		first_frame(&name, group);
		folded_stacks(out, &name, group->n, root, dump->options);
		if (name.failed)
			tdt__string_free(&name);
	}
	tdt__string_free(&name);
}
