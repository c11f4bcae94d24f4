// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * tdt-join-ustack: one tree for each task, of where the task waits, as the library reports it in
 * JSON, and of where a tracer saw the task.
 *
 * All traces are read first.  The stacks are read one by one, and each is added to the tree of its
 * task.  So memory is needed for the traces, and for stacks only as far as they differ.
 */

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/dump.h>
#include <tdt/tree.h>

#include "base/array.h"
#include "cli/join.h"
#include "cli/options.h"
#include "cli/read_json.h"
#include "tree-printer/terminal.h"
#include "tree-printer/view.h"

struct tasks {
	TDT__TABLE(struct joined, task, n); /* by id */
	size_t replaced; /* traces that are left out, because a later one is of the same task */

	uint64_t strangers; /* how many stacks are of tasks without a trace */
	uint64_t stranger;  /* the id of one such task */
};

static int no_memory(void)
{
	fprintf(stderr, "%s: %s\n", program_name, strerror(ENOMEM));
	return EXIT_BAD_INPUT;
}

/*
 * Take over `trace`, which replaces an earlier one of the task.  False: no memory, and the trace is
 * freed.
 */
static bool add_task(struct tasks *tasks, struct tdt_trace *trace)
{
	const struct joined new = { .id = trace != NULL ? tdt_trace_info(trace)->id : 0 };
	uint32_t i;

	if (trace == NULL)
		return false;
	i = tdt__table_note(&tasks->task_table, &new, sizeof(new.id), sizeof(new));
	if (i == TDT__INDEX_NONE) {
		tdt_trace_free(trace);
		return false;
	}
	tasks->replaced += tasks->task[i].trace != NULL;
	joined_fini(&tasks->task[i]);
	return joined_init(&tasks->task[i], trace) == 0;
}

/* Copy the tree of a group (NULL: it has none) for one of its tasks.  NULL: no memory. */
static struct tdt_trace *unshare(const struct tdt_task_info *task, const struct tdt_trace *shared)
{
	struct tdt_trace *trace = tdt_trace_new(task);
	const struct tdt_node *root = shared != NULL ? tdt_trace_root(shared) : NULL, **nodes;
	uint32_t n, id;

	if (trace == NULL || root == NULL)
		return trace;
	nodes = tdt__nodes_by_id(root, &n);
	for (id = 1; nodes != NULL && id < n; id++) {
		const struct tdt_node *parent = tdt_node_parent(nodes[id]);
		/* Ids rise from parents to children: the parent's entry is its copy by now. */
		nodes[id] = tdt_trace_add(trace, parent == root ? NULL : nodes[tdt_node_id(parent)],
					  tdt_node_frame(nodes[id]), tdt_node_leaves(nodes[id]));
		if (nodes[id] == NULL)
			break;
	}
	if (nodes == NULL || id < n) {
		tdt_trace_free(trace);
		trace = NULL;
	}
	free(nodes);
	return trace;
}

static bool add_tasks_of(struct tasks *tasks, const struct tdt_snapshot_group *group)
{
	for (size_t i = 0; i < group->n; i++)
		if (!add_task(tasks, unshare(group->tasks[i], group->trace)))
			return false;
	return true;
}

/* Add the tasks of a dump, and free it.  False: no memory. */
static bool add_dump(struct tasks *tasks, struct dump *dump)
{
	const struct tdt_snapshot *snapshot = dump_snapshot(dump);
	bool added = true;

	for (size_t i = 0; i < snapshot->n_panics && added; i++)
		added = add_tasks_of(tasks, snapshot->panics[i]);
	for (size_t i = 0; i < snapshot->n_groups && added; i++)
		added = add_tasks_of(tasks, snapshot->groups[i]);
	dump_free(dump);
	return added;
}

static int read_traces(struct tasks *tasks, const char *name)
{
	struct reader reader = { .file = program_open(&name) };
	struct tdt_trace *trace;
	struct dump *dump;
	int result;

	if (reader.file == NULL)
		return EXIT_BAD_INPUT;
	while ((result = reader_next(&reader, &trace, &dump)) > 0) {
		if (dump != NULL ? !add_dump(tasks, dump) : !add_task(tasks, trace)) {
			program_close(reader.file);
			return no_memory();
		}
	}
	program_close(reader.file);
	if (result < 0)
		return program_input_failed(name, reader.line,
					    reader.column != 0 ? (long)reader.column : -1,
					    reader.message);
	return 0;
}

static int join_stack(struct tasks *tasks, const struct ustack *stack)
{
	uint32_t i = tdt__table_find(&tasks->task_table, &stack->task, sizeof(stack->task),
				     sizeof(*tasks->task));

	if (i != TDT__INDEX_NONE)
		return joined_add(&tasks->task[i], stack);
	tasks->strangers += stack->count;
	tasks->stranger = stack->task;
	return 0;
}

static int stacks_failed(const char *name, const struct ustack_reader *reader, const char *message)
{
	return program_input_failed(name, reader->line, -1, message);
}

static int read_stacks(struct tasks *tasks, const char *name)
{
	static struct ustack stack;
	struct ustack_reader reader = { .file = program_open(&name) };
	int result, err = 0, status = 0;

	if (reader.file == NULL)
		return EXIT_BAD_INPUT;
	while (err == 0 && (result = ustack_next(&reader, &stack)) != 0) {
		if (result < 0) {
			status = stacks_failed(name, &reader, reader.message);
			break;
		}
		err = join_stack(tasks, &stack);
	}
	if (err == -E2BIG)
		status = stacks_failed(name, &reader, "too many different stacks of one task");
	else if (err != 0)
		status = no_memory();
	program_close(reader.file);
	ustack_end(&reader, &stack);
	return status;
}

static int print_tasks(const struct tasks *tasks, const struct tdt_print_options *options)
{
	int err = 0;

	for (size_t i = 0; i < tasks->n && err == 0; i++)
		err = joined_print(&tasks->task[i], stdout, options);
	if (err == 0 && fflush(stdout) != 0)
		err = -errno;
	return err == 0 ? EXIT_SUCCESS : program_output_failed(-err);
}

static void report_left_out(const struct tasks *tasks)
{
	if (tasks->replaced != 0)
		fprintf(stderr, "%s: traces left out: %zu, of tasks that have a later one\n",
			program_name, tasks->replaced);
	if (tasks->strangers != 0)
		fprintf(stderr,
			"%s: stacks left out: %" PRIu64
			", of tasks that have no trace (task %" PRIu64 ", for one)\n",
			program_name, tasks->strangers, tasks->stranger);
}

/* `names`: of the file of traces, and of those of stacks. */
static int join(struct tasks *tasks, char **names, const struct tdt_print_options *print)
{
	int status = read_traces(tasks, *names++);

	for (; status == 0 && *names != NULL; names++)
		status = read_stacks(tasks, *names);
	tdt__array_sort(tasks->task, tasks->n, sizeof(*tasks->task));
	if (status == 0)
		status = print_tasks(tasks, print);
	if (status == 0)
		report_left_out(tasks);
	return status;
}

int main(int argc, char **argv)
{
	struct options options = { .verbose = false };
	struct tasks tasks = { 0 };
	int status;

	setlocale(LC_ALL, "");
	program_name = "tdt-join-ustack";
	options_read(COMMAND_JOIN, &options, &argc, &argv);
	if (argc < 2)
		bad_usage("a file of traces and one of stacks are wanted", "");
	tdt__terminal_choose(&options.print, stdout);
	status = join(&tasks, argv, &options.print);
	for (size_t i = 0; i < tasks.n; i++)
		joined_fini(&tasks.task[i]);
	tdt__table_fini(&tasks.task_table);
	return status;
}
