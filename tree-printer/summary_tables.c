// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The tables of a summary's text. */

#include "summary_lines.h"

#include <stdio.h>
#include <string.h>

#include <tdt/layout/recording.h>

#include "words.h"

enum {
	NAME_COLUMNS = 26 /* of the first column, with its indent */
};

/* ---- Cells ---- */

/* The first cell of a row: cut, so that the columns stay in line. */
static void name_cell(struct tdt__summary_lines *text)
{
	size_t columns = 0, end = 0;

	tdt__string_puts(&text->line, "   ");
	while (end < text->part.n) {
		columns += ((unsigned char)text->part.bytes[end] & 0xc0) != 0x80;
		if (columns > NAME_COLUMNS - 3)
			break;
		end++;
	}
	tdt__string_add(&text->line, text->part.bytes, end);
	if (columns < NAME_COLUMNS - 3)
		tdt__string_printf(&text->line, "%*s", (int)(NAME_COLUMNS - 3 - columns), "");
	text->part.n = 0;
}

static void count_cell(struct tdt__summary_lines *text, uint64_t n)
{
	tdt__count(&text->part, n);
	tdt__lines_add_right(text, 11, "");
}

static void duration_cell(struct tdt__summary_lines *text, uint64_t ns)
{
	tdt__string_puts(&text->part, TDT__DURATION(ns));
	tdt__lines_add_right(text, 11, "");
}

static void share_cell(struct tdt__summary_lines *text, double share)
{
	unsigned tenths = (unsigned)(tdt__summary_share(share) * 1000 + 0.5);

	tdt__string_printf(&text->part, "%u.%u %%", tenths / 10, tenths % 10);
	tdt__lines_add_right(text, 11, "");
}

/* The heading of a table with three or four columns behind the first one. */
static void table_heading(struct tdt__summary_lines *text, const char *const cells[5])
{
	char words[128];

	snprintf(words, sizeof(words), "%-*s%11s%11s%11s%11s", NAME_COLUMNS, cells[0], cells[1],
		 cells[2], cells[3], cells[4]);
	for (size_t n = strlen(words); n > 0 && words[n - 1] == ' ';)
		words[--n] = '\0';
	tdt__lines_heading(text, words);
}

/* ---- Families of tasks ---- */

/* The name of a family in which the names have other numbers: "conn #". */
static void name_with_numbers(struct tdt__summary_lines *text, const char *name)
{
	char plain[TDT_TASK_NAME_MAX + 1];
	size_t n = 0;

	for (; *name != '\0' && n < TDT_TASK_NAME_MAX; name++) {
		bool digit = *name >= '0' && *name <= '9';

		if (!digit || n == 0 || plain[n - 1] != '#')
			plain[n++] = digit ? '#' : *name;
	}
	plain[n] = '\0';
	tdt__string_escape(&text->part, plain, text->options->utf8 == TDT_PRINT_YES, '"');
}

/* The name of a family; the place where its tasks were spawned, if they have no name. */
static void family_name(struct tdt__summary_lines *text, const struct tdt__summary_latency *family)
{
	const struct tdt__recorded_task *task = &text->tasks[family->task];

	if (task->name[0] != '\0') {
		tdt__string_puts(&text->part, "\"");
		if (family->several)
			name_with_numbers(text, task->name);
		else
			tdt__string_escape(&text->part, task->name,
					   text->options->utf8 == TDT_PRINT_YES, '"');
		tdt__string_puts(&text->part, "\"");
	} else if (task->file[0] != '\0') {
		tdt__spawn_place(&text->part, task->file, task->line, task->column, text->options);
	} else {
		tdt__string_puts(&text->part, "(unknown tasks)");
	}
}

/* ---- The tables ---- */

static void latency_row(struct tdt__summary_lines *text, const struct tdt__summary_latency *entry)
{
	family_name(text, entry);
	name_cell(text);
	duration_cell(text, entry->median);
	duration_cell(text, entry->p99);
	duration_cell(text, entry->most);
	count_cell(text, entry->n);
}

static void busy_row(struct tdt__summary_lines *text, const struct tdt__summary_busy *entry)
{
	tdt__lines_task(text, &text->part, entry->task);
	name_cell(text);
	share_cell(text, entry->share);
	duration_cell(text, entry->ns);
	count_cell(text, entry->polls);
}

/* What a thread did when the recording ended, if it was not parked. */
static void thread_now(struct tdt__summary_lines *text, const struct tdt__summary_worker *worker)
{
	if (worker->task == TDT__NO_TASK)
		return;
	text->column = TDT__LINES_COLUMNS; /* on a line of its own */
	tdt__string_puts(&text->part, "polls task ");
	tdt__lines_task(text, &text->part, worker->task);
	tdt__string_printf(&text->part, " for %s",
			   TDT__DURATION(text->summary->end - worker->since));
	tdt__lines_end_part(text);
}

static void worker_row(struct tdt__summary_lines *text, const struct tdt__summary_worker *worker)
{
	double polling = (double)worker->polling / (double)worker->recorded;
	double parked = (double)worker->parked / (double)worker->recorded;

	tdt__task_name(&text->part, worker->thread, tdt__name_or_null(worker->name), text->options);
	name_cell(text);
	share_cell(text, polling);
	share_cell(text, parked);
	share_cell(text, polling + parked < 1 ? 1 - polling - parked : 0);
	count_cell(text, worker->polls);
	thread_now(text, worker);
}

static void ring_row(struct tdt__summary_lines *text, const struct tdt__recorded_ring *ring)
{
	static const char *const kinds[] = { "", "  polls", "  no polls", "  remarkable",
					     "  of the recorder" };
	const struct tdt__recorded_thread *thread = &text->threads[ring->thread];

	tdt__task_name(&text->part, thread->id, tdt__name_or_null(thread->name), text->options);
	name_cell(text);
	duration_cell(text, text->summary->end - ring->from);
	count_cell(text, ring->n);
	count_cell(text, ring->first);
	tdt__string_puts(&text->line, ring->kind <= TDT_RING_SERVICE ? kinds[ring->kind] : "");
}

/* Write a table, unless it is empty: the names of its columns, and `row(text, &...)` for each
 * entry. */
#define TABLE(text, list, number, row, ...)                                                        \
	do {                                                                                       \
		static const char *const cells[5] = { __VA_ARGS__ };                               \
                                                                                                   \
		if ((number) != 0)                                                                 \
			table_heading(text, cells);                                                \
		for (size_t i = 0; i < (number); i++) {                                            \
			tdt__lines_begin(text);                                                    \
			row(text, &(list)[i]);                                                     \
			tdt__lines_end(text);                                                      \
		}                                                                                  \
	} while (0)

void tdt__summary_tables(struct tdt__summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;

	TABLE(text, summary->latency.entry, summary->latency.n, latency_row, "from wake-up to poll",
	      "median", "99 %", "most", "polls");
	tdt__lines_say_more(text, summary->latency.n, summary->latency.found);
	TABLE(text, summary->busy.entry, summary->busy.n, busy_row, "busiest tasks", "in polls",
	      "time", "polls", "");
	TABLE(text, summary->workers.entry, summary->workers.n, worker_row, "threads", "polling",
	      "parked", "neither", "polls");
	tdt__lines_say_more(text, summary->workers.n, summary->workers.found);
	if (text->form->full)
		TABLE(text, summary->recording->ring, summary->recording->n_rings, ring_row,
		      "rings", "back to", "slots", "lost", "");
}
