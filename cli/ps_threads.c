// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The threads that poll, as a table and as JSON. */

#include <inttypes.h>

#include "cli/ps.h"
#include "cli/text_table.h"
#include "reader/thread_table.h"
#include "tree-printer/words.h"

static const struct text_column thread_columns[] = {
	{ "THREAD", true }, { "NAME", false }, { "STATE", false },
	{ "FOR", true },    { "TASK", false },
};

/* A worker that neither idles nor polls is busy with itself. */
static const char *thread_state(const struct tdt__known_thread *thread)
{
	if (thread->polls != NULL)
		return "polling";
	if (thread->parked_ns != 0)
		return "parked";
	return thread->worker ? "between polls" : "no worker";
}

/* How long the thread has been in its state; 0: unknown. */
static uint64_t thread_ns(const struct tdt__known_thread *thread)
{
	return thread->polls != NULL ? thread->polls->member.info.state_ns : thread->parked_ns;
}

static void add_thread_row(struct text_table *table, const struct tdt__known_thread *thread,
			   const struct tdt_print_options *options)
{
	tdt__string_printf(&table->text, "%" PRIu32, thread->id);
	text_table_cell(table);
	tdt__string_escape(&table->text, thread->name, options->utf8 == TDT_PRINT_YES, '\0');
	text_table_cell(table);
	tdt__string_puts(&table->text, thread_state(thread));
	text_table_cell(table);
	if (thread_ns(thread) != 0)
		tdt__string_puts(&table->text, TDT__DURATION_CELL(thread_ns(thread)));
	text_table_cell(table);
	if (thread->polls != NULL)
		tdt__task_name(&table->text, thread->polls->member.info.id,
			       thread->polls->member.info.name, options);
	text_table_cell(table);
}

int ps_threads(struct tdt__out *out, const struct listing *listing)
{
	struct tdt__thread_table threads;
	struct text_table table;
	int error = ps_summary(out, listing);

	if (error == 0)
		error = tdt__thread_table_read(&threads, listing->tasks);
	if (error != 0)
		return error;
	text_table_begin(&table, thread_columns, 5, threads.n);
	table.most = listing->width;
	for (size_t i = 0; i < threads.n && !table.text.failed; i++)
		add_thread_row(&table, &threads.thread[i], listing->print);
	tdt__thread_table_fini(&threads);
	return text_table_end(&table, out);
}

/* --- JSON --------------------------------------------------------------------------- */

void ps_json_threads(struct tdt__json *json, const struct listing *listing)
{
	struct tdt__thread_table threads;
	int error = tdt__thread_table_read(&threads, listing->tasks);

	if (error != 0) {
		tdt__out_fail(json->out, error);
		return;
	}
	tdt__json_begin(json, "threads", '[');
	for (size_t i = 0; i < threads.n; i++) {
		const struct tdt__known_thread *thread = &threads.thread[i];

		tdt__json_begin(json, NULL, '{');
		tdt__json_known_u64(json, "thread", thread->id);
		tdt__json_known_string(json, "name", thread->name);
		tdt__json_bool(json, "worker", thread->worker);
		tdt__json_known_u64(json, "parked_ns", thread->parked_ns);
		if (thread->polls != NULL)
			tdt__json_known_u64(json, "task", thread->polls->member.info.id);
		tdt__json_end(json, '}');
	}
	tdt__json_end(json, ']');
	tdt__thread_table_fini(&threads);
}
