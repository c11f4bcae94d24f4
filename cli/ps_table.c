// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tasks as a table, threads as a table, and both as JSON. */

#include "cli/ps.h"

#include <inttypes.h>

#include "cli/text_table.h"
#include "facts/record.h"
#include "facts/traceparent.h"
#include "reader/history.h"
#include "reader/thread_table.h"
#include "tree-printer/forms.h"
#include "tree-printer/words.h"

#define COLUMNS 10 /* without the last one, if no task has a trace context */

static const struct text_column columns[COLUMNS] = {
	{ "ID", true },	     { "NAME", false },     { "STATE", false },
	{ "FOR", true },     { "AGE", true },	    { "POLLS", true },
	{ "WOKEN BY", true }, { "WAITS FOR", false }, { "SPAWNED AT", false },
	{ "TRACE", true }, /* never cut */
};

static bool has_context(const struct listing *listing)
{
	for (size_t i = 0; i < listing->n; i++)
		if (listing->shown[i]->member.info.context.valid == 1)
			return true;
	return false;
}

static void add_task_row(struct text_table *table, const struct tdt__seen_task *task, bool traces)
{
	const struct tdt_task_info *info = &task->member.info;
	struct tdt__string *text = &table->text;
	char traceparent[TDT__TRACEPARENT_SIZE];

	tdt__string_printf(text, "%" PRIu64, info->id);
	text_table_cell(table);
	tdt__string_text(text, info->name != NULL ? info->name : "");
	text_table_cell(table);
	ps_state(text, task);
	text_table_cell(table);
	tdt__string_puts(text, TDT__DURATION_CELL(info->state_ns));
	text_table_cell(table);
	tdt__string_puts(text, TDT__DURATION_CELL(info->spawned_ns));
	text_table_cell(table);
	tdt__string_puts(text, TDT__NUMBER(info->polls));
	text_table_cell(table);
	if (info->woken_by != 0)
		tdt__string_printf(text, "%" PRIu64, info->woken_by);
	text_table_cell(table);
	if (info->n_waits != 0)
		tdt__waited_for(text, &task->wait, info->id, NULL);
	else if (tdt__has_no_tree(info))
		tdt__string_puts(text, TDT__NO_TREE);
	text_table_cell(table);
	tdt__string_text(text, info->file != NULL ? info->file : "");
	if (info->file != NULL && info->line != 0)
		tdt__string_printf(text, ":%" PRIu32, info->line);
	text_table_cell(table);
	if (!traces)
		return;
	tdt__traceparent(traceparent, &info->context);
	if (info->context.valid == 1)
		tdt__string_printf(text, "%.32s", traceparent + TDT__TRACE_AT);
	text_table_cell(table);
}

void ps_table(struct tdt__out *out, const struct listing *listing)
{
	bool traces = has_context(listing);
	struct text_table table;

	ps_summary(out, listing);
	text_table_begin(&table, columns, traces ? COLUMNS : COLUMNS - 1, listing->n);
	table.most = listing->width;
	table.text.options = listing->print;
	for (size_t i = 0; i < listing->n && !table.text.failed; i++)
		add_task_row(&table, listing->shown[i], traces);
	text_table_end(&table, out);
}

static const struct text_column thread_columns[] = {
	{ "THREAD", true }, { "NAME", false }, { "STATE", false },
	{ "FOR", true },    { "TASK", false },
};

/* How long the thread has been in its state; 0: unknown. */
static uint64_t thread_ns(const struct tdt__known_thread *thread)
{
	return thread->polls != NULL ? thread->polls->member.info.state_ns : thread->parked_ns;
}

static void add_thread_row(struct text_table *table, const struct tdt__known_thread *thread)
{
	tdt__string_printf(&table->text, "%" PRIu32, thread->id);
	text_table_cell(table);
	tdt__string_text(&table->text, thread->name);
	text_table_cell(table);
	tdt__string_puts(&table->text, tdt__thread_word(thread->polls != NULL,
							thread->parked_ns != 0, thread->worker));
	text_table_cell(table);
	tdt__string_puts(&table->text, TDT__DURATION_CELL(thread_ns(thread)));
	text_table_cell(table);
	if (thread->polls != NULL)
		tdt__task_name(&table->text, thread->polls->member.info.id,
			       thread->polls->member.info.name);
	text_table_cell(table);
}

void ps_threads(struct tdt__out *out, const struct listing *listing)
{
	struct tdt__thread_table threads;
	struct text_table table;

	ps_summary(out, listing);
	if (tdt__thread_table_read(&threads, listing->tasks) != 0) {
		out->no_memory = true;
		return;
	}
	text_table_begin(&table, thread_columns, 5, threads.n);
	table.most = listing->width;
	table.text.options = listing->print;
	for (size_t i = 0; i < threads.n && !table.text.failed; i++)
		add_thread_row(&table, &threads.thread[i]);
	tdt__thread_table_fini(&threads);
	text_table_end(&table, out);
}

static void json_head(struct tdt__json *json, const struct listing *listing)
{
	const struct tdt_snapshot_process process = tdt__tasks_process(listing->tasks);

	tdt__json_begin(json, "ps", '{');
	tdt__json_u64(json, "pid", ps_pid(listing));
	if (listing->last != NULL)
		last_json(json, listing->last);
	else
		tdt__json_address(json, "registry", listing->tasks->registry.self);
	tdt__json_true(json, "at_least", tdt__tasks_at_least(listing->tasks));
	tdt__json_u64(json, "tasks", listing->tasks->n);
	tdt__json_process(json, &process);
	tdt__json_end(json, '}');
}

static void json_history(struct tdt__json *json, const struct listing *listing)
{
	struct tdt__seen_misuse seen;
	struct tdt_counts counts;

	tdt__history_counts(listing->tasks, &counts);
	tdt__json_begin(json, "counts", '{');
	tdt__json_u64(json, "spawned", counts.spawned);
	tdt__json_u64(json, "ended", counts.ended);
	tdt__json_u64(json, "panicked", counts.panicked);
	tdt__json_u64(json, "polls", counts.polls);
	tdt__json_u64(json, "captures", counts.captures);
	tdt__json_u64(json, "dumps", counts.dumps);
	tdt__json_known_u64(json, "held", counts.held);
	tdt__json_known_u64(json, "lost_wakeups", counts.lost_wakeups);
	tdt__json_end(json, '}');
	if (tdt__history_misuse(listing->tasks, &seen))
		tdt__json_misuse(json, &seen.misuse);
}

static void thread_members(struct tdt__json *json, const struct tdt__known_thread *thread)
{
	tdt__json_known_u64(json, "thread", thread->id);
	tdt__json_known_string(json, "name", thread->name);
	tdt__json_bool(json, "worker", thread->worker);
	tdt__json_known_u64(json, "parked_ns", thread->parked_ns);
	if (thread->polls != NULL)
		tdt__json_known_u64(json, "task", thread->polls->member.info.id);
}

/* The array of the threads.  Lack of memory is kept in the `out` of `json`. */
static void json_threads(struct tdt__json *json, const struct listing *listing)
{
	struct tdt__thread_table threads;
	int error = tdt__thread_table_read(&threads, listing->tasks);

	if (error != 0) {
		tdt__out_fail(json->out, error);
		return;
	}
	TDT__JSON_LIST(json, "threads", threads.thread, threads.n, thread_members, json);
	tdt__thread_table_fini(&threads);
}

static void task_members(struct tdt__json *json, const struct tdt__seen_task *const *task)
{
	tdt__json_task(json, "task", &(*task)->member.info);
	tdt__json_string(json, "outcome", (*task)->outcome);
	tdt__json_string(json, "last", (*task)->last);
}

void ps_json(struct tdt__out *out, const struct listing *listing)
{
	struct tdt__json json = tdt__json_document(out);

	json_head(&json, listing);
	if (listing->last == NULL)
		json_history(&json, listing);
	tdt__json_rings(&json, listing->found.cycles, listing->found.n_cycles);
	tdt__json_stuck_locks(&json, &listing->found);
	if (listing->threads)
		json_threads(&json, listing);
	TDT__JSON_LIST(&json, "tasks", listing->shown, listing->n, task_members, &json);
	tdt__json_finish(&json);
}
