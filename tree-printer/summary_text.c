// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The summary of a recording as text, for a reader who has just been woken by a pager: 80 columns,
 * what is wrong comes first, and nothing is said of what is not there.  docs/recorder.md has an
 * example.
 */

#include "summaries.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/layout/recording.h>

#include "base/text.h"
#include "forms.h"
#include "frame.h"
#include "recording/read.h"
#include "terminal.h"
#include "view.h"
#include "words.h"

enum {
	LINE_COLUMNS = 80,
	LINE_INDENT = 13, /* of the lines below the first one of an entry */
	FRAMES_SHOWN = 3, /* of a stack, unless all are wanted */
	NAME_COLUMNS = 26 /* of the first column of a table, with its indent */
};

/* While it is written, the lines of one entry after the other. */
struct summary_lines {
	struct tdt__out *out;
	const struct tdt__summary_form *form;
	const struct tdt__summary *summary;
	struct tdt__string line; /* the lines of one entry */
	struct tdt__string part; /* the next part of them */
	size_t column;		 /* where the last of these lines ends */
};

/* The functions of words.h want NULL for a name that is not known. */
static const char *name_or_null(const char *name)
{
	return name[0] != '\0' ? name : NULL;
}

/* ---- Lines that are broken between their parts ---- */

static void begin_lines(struct summary_lines *text)
{
	text->line.n = 0;
	text->part.n = 0;
	text->column = 0;
}

static void indent_line(struct summary_lines *text)
{
	while (text->line.n > 0 && text->line.bytes[text->line.n - 1] == ' ')
		text->line.n--;
	tdt__string_printf(&text->line, "\n%*s", LINE_INDENT, "");
	text->column = LINE_INDENT;
}

/* Add the part that was made, behind a space or on a line of its own. */
static void end_part(struct summary_lines *text)
{
	size_t n = tdt__columns(text->part.bytes, text->part.n);

	if (n == 0)
		return;
	if (text->column > LINE_INDENT && text->column + 1 + n > LINE_COLUMNS) {
		indent_line(text);
	} else if (text->column > LINE_INDENT) {
		tdt__string_puts(&text->line, " ");
		text->column++;
	}
	tdt__string_add(&text->line, text->part.bytes, text->part.n);
	text->column += n;
	text->part.n = 0;
}

#define ADD_PART(text, ...)                                                                        \
	do {                                                                                       \
		tdt__string_printf(&(text)->part, __VA_ARGS__);                                    \
		end_part(text);                                                                    \
	} while (0)

/* Add the part that was made so that it ends at the right of `columns` columns. */
static void add_right(struct summary_lines *text, size_t columns, const char *color)
{
	size_t n = tdt__columns(text->part.bytes, text->part.n);

	tdt__string_printf(&text->line, "%*s", n < columns ? (int)(columns - n) : 0, "");
	tdt__color(&text->line, color);
	tdt__string_add(&text->line, text->part.bytes, text->part.n);
	tdt__color(&text->line, TDT__PLAIN);
	text->part.n = 0;
}

/* Write the lines.  Without memory for them they are left out. */
static void end_lines(struct summary_lines *text)
{
	if (text->line.failed || text->part.failed) {
		text->out->no_memory = true;
		tdt__string_free(&text->line);
		tdt__string_free(&text->part);
		return;
	}
	tdt__out_add(text->out, text->line.bytes, text->line.n);
	tdt__out_add(text->out, "\n", 1);
}

/* ---- Words ---- */

static void summary_task(struct summary_lines *text, struct tdt__string *string, uint32_t index)
{
	const struct tdt__recorded_task *task = &text->summary->recording->task[index];

	tdt__task_name(string, task->id, name_or_null(task->name));
}

/* ---- Around the entries of a list ---- */

#define WRITE_LINE(text, ...)                                                                      \
	do {                                                                                       \
		begin_lines(text);                                                                 \
		tdt__string_printf(&(text)->line, __VA_ARGS__);                                    \
		end_lines(text);                                                                   \
	} while (0)

static void section_heading(struct summary_lines *text, const char *words)
{
	begin_lines(text);
	tdt__string_puts(&text->line, "\n");
	tdt__colored(&text->line, TDT__BOLD, words);
	end_lines(text);
}

static void say_more(struct summary_lines *text, size_t shown, size_t found)
{
	if (found <= shown)
		return;
	WRITE_LINE(text, "   and %s more", TDT__NUMBER(found - shown));
}

/*
 * Write a section: a heading, unless the list is empty, and `entry(text, &...)` for each entry.
 */
#define SECTION(text, words, list, entry_lines)				\
	do {									\
		if ((list).n != 0)						\
			section_heading(text, words);			\
		for (size_t i = 0; i < (list).n; i++)				\
			entry_lines(text, &(list).entry[i]);			\
	} while (0)

/* ---- The head ---- */

static void head_counts(struct summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;

	begin_lines(text);
	tdt__string_printf(&text->line, "%s, %s, %s", TDT__COUNTED(summary->polls, "poll"),
			   TDT__COUNTED(summary->wakes, "wake-up"),
			   TDT__COUNTED(summary->tasks, "task"));
	if (summary->panicked != 0) {
		tdt__string_puts(&text->line, ", ");
		tdt__color(&text->line, TDT__RED);
		tdt__string_printf(&text->line, "%s panicked", TDT__NUMBER(summary->panicked));
		tdt__color(&text->line, TDT__PLAIN);
	}
	end_lines(text);
}

/* What is not in the recording. */
static void head_gaps(struct summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;
	const struct tdt_recording *header = &summary->recording->header;
	uint32_t lost = tdt__recording_stacks_lost(summary->recording);

	if (summary->whole > summary->start && summary->whole < summary->end)
		WRITE_LINE(
		    text, "Waits and latencies are those of the last %s: older events are missing.",
		    TDT__DURATION(summary->end - summary->whole));
	else if (summary->whole > summary->start)
		WRITE_LINE(text, "Waits and latencies are not known: events are missing up to the "
				 "end.");
	if (header->missed != 0)
		WRITE_LINE(text, "%s %s not recorded, %s among them: no ring was left",
			   TDT__COUNTED(header->missed, "event"),
			   header->missed == 1 ? "was" : "were",
			   TDT__COUNTED(header->missed_polls, "poll"));
	if (lost != 0)
		WRITE_LINE(text, "%s %s not recorded: their table was full, or no capture was left",
			   TDT__COUNTED(lost, "stack"), lost == 1 ? "was" : "were");
}

static void summary_head(struct summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;
	const struct tdt_recording *header = &summary->recording->header;
	struct tdt__string *line = &text->line;

	begin_lines(text);
	tdt__color(line, TDT__BOLD);
	tdt__string_text(line, header->program);
	tdt__string_printf(line, "[%" PRIu32 "]", header->pid);
	tdt__color(line, TDT__PLAIN);
	tdt__string_printf(
	    line, ": %s until %s",
	    TDT__DURATION(tdt__recording_time(summary->recording, summary->start, summary->end)),
	    TDT__WALL_CLOCK(summary->end + summary->real, true));
	if (header->recording == 0)
		tdt__string_puts(line, "\nThe recorder was stopped then.");
	end_lines(text);
	head_counts(text);
	head_gaps(text);
}

/* ---- Parts of an entry ---- */

/* A part: `task 7 "a"`; and another one with the spawn place of a task that has no name. */
static void task_part(struct summary_lines *text, uint32_t index)
{
	const struct tdt__recorded_task *task = &text->summary->recording->task[index];

	tdt__string_puts(&text->part, "task ");
	summary_task(text, &text->part, index);
	end_part(text);
	if (task->name[0] != '\0' || task->file[0] == '\0')
		return;
	tdt__spawn_place(&text->part, task->file, task->line, task->column);
	end_part(text);
}

/* Whether `at` is on another day than the end, as far as the reader has to be told. */
static bool is_long_ago(const struct tdt__summary *summary, uint64_t at)
{
	return summary->end > at && summary->end - at > UINT64_C(12) * 3600 * 1000000000;
}

/* The beginning of an entry: how long (0: nothing is said of that), and when. */
static void begin_entry(struct summary_lines *text, uint64_t ns, uint64_t at,
			const char *color)
{
	begin_lines(text);
	if (ns != 0)
		tdt__string_puts(&text->part, TDT__DURATION(ns));
	add_right(text, LINE_INDENT - 2, color);
	tdt__string_puts(&text->line, "  ");
	text->column = LINE_INDENT;
	ADD_PART(text, "%s ",
		 TDT__WALL_CLOCK(at + text->summary->real, is_long_ago(text->summary, at)));
}

/* A part: "(12 waits, 1.204 s in all)". */
static void in_all(struct summary_lines *text, uint64_t n, const char *what, uint64_t total)
{
	if (n < 2)
		return;
	ADD_PART(text, "(%s%s %s in all)", TDT__NUMBER(n), what, TDT__DURATION(total));
}

/* ---- Stacks ---- */

/* The module of the outermost shown frame, which is the poll function: the user's code. */
static const char *users_module(const struct tdt__view *view)
{
	const struct tdt_frame *frame =
	    view->n > 1 && view->row[1].node != NULL ? tdt_node_frame(view->row[1].node) : NULL;

	return frame != NULL && frame->module != NULL ? frame->module : "";
}

/*
 * The innermost frame, and then the innermost ones of the user's code: "in memset from fill at
 * x.c:18:11 from parser_poll at x.c:40:3".
 */
static void innermost_frames(struct summary_lines *text, const struct tdt__view *view)
{
	const char *module = users_module(view), *before = "in ";

	for (uint32_t row = view->n - 1, n = 0; row > 0 && n < FRAMES_SHOWN;
	     row = view->row[row].parent) {
		const struct tdt_frame *frame = tdt_node_frame(view->row[row].node);
		const char *own = frame != NULL && frame->module != NULL ? frame->module : "";
		bool users = strcmp(own, module) == 0;

		if (frame == NULL || (!users && n > 0))
			continue;
		tdt__string_puts(&text->part, before);
		tdt__frame_name(&text->part, frame);
		if (users)
			tdt__frame_place(&text->part, frame);
		end_part(text);
		before = "from ";
		n++;
	}
}

static void short_stack(struct summary_lines *text, const struct tdt_node *root)
{
	struct tdt__view view;

	if (tdt__view_make(&view, root, text->form->options, NULL) != 0) {
		text->out->no_memory = true;
		return;
	}
	innermost_frames(text, &view);
	free(view.row);
}

static void whole_stack(struct summary_lines *text, const struct tdt_node *root)
{
	struct tdt_print_options options = *text->form->options;
	struct tdt__frames frames = { .string.options = &options };

	options.full = 1;
	tdt__print_tree(text->out, NULL, root, &frames, NULL);
	tdt__frames_fini(&frames);
}

static void end_entry(struct summary_lines *text, uint32_t stack)
{
	const struct tdt_node *root = tdt__summary_root(text->form, stack);

	if (root != NULL && !text->form->full)
		short_stack(text, root);
	end_lines(text);
	if (root != NULL && text->form->full)
		whole_stack(text, root);
}

/* ---- The sections ---- */

static void panic_lines(struct summary_lines *text, const struct tdt__summary_panic *panic)
{
	begin_entry(text, 0, panic->at, "");
	task_part(text, panic->task);
	ADD_PART(text, "on thread %" PRIu32, panic->thread);
	end_lines(text);
}

static void lost_lines(struct summary_lines *text, const struct tdt__summary_lost *lost)
{
	begin_entry(text, lost->ns, lost->at, TDT__RED);
	task_part(text, lost->task);
	end_lines(text);
}

static void slow_polls(struct summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;
	const struct tdt_recording *header = &summary->recording->header;

	if (summary->slow.n == 0)
		return;
	section_heading(text, "slowest polls");
	for (size_t i = 0; i < summary->slow.n; i++) {
		const struct tdt__summary_poll *poll = &summary->slow.entry[i];

		if (i > 0 && poll->ns < header->long_poll && !text->form->full)
			break; /* it is not slow */
		begin_entry(text, poll->ns, poll->start,
			    poll->ns >= header->long_poll ? TDT__RED : "");
		task_part(text, poll->task);
		ADD_PART(text, "on thread %" PRIu32, poll->thread);
		if (poll->going_on)
			ADD_PART(text, "(not over)");
		end_entry(text, poll->stack);
	}
}

static void wait_parts(struct summary_lines *text, const struct tdt__summary_wait *wait)
{
	struct tdt_wait what = wait->what;
	const char *owner = wait->owner != TDT__NO_TASK
				? name_or_null(text->summary->recording->task[wait->owner].name)
				: NULL;

	if (what.kind == TDT_WAIT_UNKNOWN && what.object == 0 && what.owner == 0)
		return;
	tdt__wait_for(&text->part, &what, text->summary->recording->task[wait->task].id, owner);
	end_part(text);
}

static void waits(struct summary_lines *text, const char *words,
		  const struct tdt__summary_wait *wait, size_t n, const char *color)
{
	if (n == 0)
		return;
	section_heading(text, words);
	for (; n > 0; n--, wait++) {
		begin_entry(text, wait->ns, wait->start, color);
		task_part(text, wait->task);
		wait_parts(text, wait);
		if (wait->going_on)
			ADD_PART(text, "(not over)");
		in_all(text, wait->n, " waits,", wait->total);
		end_entry(text, wait->stack);
	}
}

static void starved_lines(struct summary_lines *text, const struct tdt__summary_starved *entry)
{
	begin_entry(text, entry->ns, entry->at, TDT__YELLOW);
	task_part(text, entry->task);
	ADD_PART(text, "on thread %" PRIu32, entry->thread);
	if (entry->behind != TDT__NO_TASK) {
		ADD_PART(text, "behind");
		task_part(text, entry->behind);
	}
	in_all(text, entry->n, " times,", entry->total);
	ADD_PART(text, "(%s, none by another worker)", TDT__COUNTED(entry->polls, "poll"));
	end_lines(text);
}

static void delay_lines(struct summary_lines *text, const struct tdt__summary_delay *delay)
{
	begin_entry(text, delay->ns, delay->at, TDT__YELLOW);
	task_part(text, delay->task);
	if (delay->thread != 0)
		ADD_PART(text, "on thread %" PRIu32, delay->thread);
	if (delay->going_on)
		ADD_PART(text, "(not over)");
	end_lines(text);
}

static void summary_entries(struct summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;

	SECTION(text, "panicked", summary->panics, panic_lines);
	say_more(text, summary->panics.n, summary->panics.found);
	SECTION(text, "waits that only a request has ended: lost wake-ups",
			   summary->lost_wakeups, lost_lines);
	slow_polls(text);
	waits(text, "longest waits for locks", summary->locks.entry, summary->locks.n, TDT__RED);
	SECTION(
	    text, "tasks that waited for one busy worker while another worker was parked",
	    summary->starved, starved_lines);
	SECTION(text, "longest waits for a worker", summary->delays, delay_lines);
	say_more(text, summary->delays.n, summary->delays.found);
	waits(text, "longest other waits", summary->waits.entry, summary->waits.n, "");
}

/* ---- Cells ---- */

/* The first cell of a row: cut, so that the columns stay in line. */
static void name_cell(struct summary_lines *text)
{
	size_t n = text->part.n, columns;

	while ((columns = tdt__columns(text->part.bytes, n)) > NAME_COLUMNS - 3)
		n--;
	tdt__string_puts(&text->line, "   ");
	tdt__string_add(&text->line, text->part.bytes, n);
	tdt__string_printf(&text->line, "%*s", (int)(NAME_COLUMNS - 3 - columns), "");
	text->part.n = 0;
}

static void right_cell(struct summary_lines *text, const char *words)
{
	tdt__string_puts(&text->part, words);
	add_right(text, 11, "");
}

static void share_cell(struct summary_lines *text, double share)
{
	unsigned tenths = (unsigned)(tdt__summary_share(share) * 1000 + 0.5);

	tdt__string_printf(&text->part, "%u.%u %%", tenths / 10, tenths % 10);
	add_right(text, 11, "");
}

static void table_heading(struct summary_lines *text, const char *const cells[5])
{
	char words[128];

	snprintf(words, sizeof(words), "%-*s%11s%11s%11s%11s", NAME_COLUMNS, cells[0], cells[1],
		 cells[2], cells[3], cells[4]);
	for (size_t n = strlen(words); n > 0 && words[n - 1] == ' ';)
		words[--n] = '\0';
	section_heading(text, words);
}

/* ---- Families of tasks ---- */

/* The name of a family; the place where its tasks were spawned, if they have no name. */
static void family_name(struct summary_lines *text, const struct tdt__summary_latency *family)
{
	const struct tdt__recorded_task *task = &text->summary->recording->task[family->task];
	char plain[TDT_TASK_NAME_MAX + 1];

	tdt__text_without_numbers(plain, sizeof(plain), task->name, '#');
	if (task->name[0] != '\0')
		tdt__string_quoted(&text->part, family->several ? plain : task->name);
	else if (task->file[0] != '\0')
		tdt__spawn_place(&text->part, task->file, task->line, task->column);
	else
		tdt__string_puts(&text->part, "(unknown tasks)");
}

/* ---- The tables ---- */

static void latency_row(struct summary_lines *text, const struct tdt__summary_latency *entry)
{
	family_name(text, entry);
	name_cell(text);
	right_cell(text, TDT__DURATION(entry->median));
	right_cell(text, TDT__DURATION(entry->p99));
	right_cell(text, TDT__DURATION(entry->most));
	right_cell(text, TDT__NUMBER(entry->n));
}

static void busy_row(struct summary_lines *text, const struct tdt__summary_busy *entry)
{
	summary_task(text, &text->part, entry->task);
	name_cell(text);
	share_cell(text, entry->share);
	right_cell(text, TDT__DURATION(entry->ns));
	right_cell(text, TDT__NUMBER(entry->polls));
}

/* What a thread did when the recording ended, if it was not parked. */
static void thread_now(struct summary_lines *text, const struct tdt__summary_worker *worker)
{
	if (worker->task == TDT__NO_TASK)
		return;
	text->column = LINE_COLUMNS; /* on a line of its own */
	tdt__string_puts(&text->part, "polls task ");
	summary_task(text, &text->part, worker->task);
	ADD_PART(text, " for %s", TDT__DURATION(text->summary->end - worker->since));
}

static void worker_row(struct summary_lines *text, const struct tdt__summary_worker *worker)
{
	double polling = (double)worker->polling / (double)worker->recorded;
	double parked = (double)worker->parked / (double)worker->recorded;

	tdt__task_name(&text->part, worker->thread, name_or_null(worker->name));
	name_cell(text);
	share_cell(text, polling);
	share_cell(text, parked);
	share_cell(text, polling + parked < 1 ? 1 - polling - parked : 0);
	right_cell(text, TDT__NUMBER(worker->polls));
	thread_now(text, worker);
}

static void ring_row(struct summary_lines *text, const struct tdt__recorded_ring *ring)
{
	static const char *const kinds[] = { "", "  polls", "  no polls", "  remarkable",
					     "  of the recorder" };
	const struct tdt__recorded_thread *thread = &text->summary->recording->thread[ring->thread];

	tdt__task_name(&text->part, thread->id, name_or_null(thread->name));
	name_cell(text);
	right_cell(text, TDT__DURATION(text->summary->end - ring->from));
	right_cell(text, TDT__NUMBER(ring->n));
	right_cell(text, TDT__NUMBER(ring->first));
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
			begin_lines(text);                                                    \
			row(text, &(list)[i]);                                                     \
			end_lines(text);                                                      \
		}                                                                                  \
	} while (0)

static void summary_tables(struct summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;

	TABLE(text, summary->latency.entry, summary->latency.n, latency_row, "from wake-up to poll",
	      "median", "99 %", "most", "polls");
	say_more(text, summary->latency.n, summary->latency.found);
	TABLE(text, summary->busy.entry, summary->busy.n, busy_row, "busiest tasks", "in polls",
	      "time", "polls", "");
	TABLE(text, summary->workers.entry, summary->workers.n, worker_row, "threads", "polling",
	      "parked", "neither", "polls");
	say_more(text, summary->workers.n, summary->workers.found);
	if (text->form->full)
		TABLE(text, summary->recording->ring, summary->recording->n_rings, ring_row,
		      "rings", "back to", "slots", "lost", "");
}

/* ---- All of it ---- */

void tdt__summary_text(struct tdt__out *out, const struct tdt__summary_form *form)
{
	struct summary_lines text = { .out = out,
				      .form = form,
				      .summary = form->summary,
				      .line.options = form->options,
				      .part.options = form->options };

	summary_head(&text);
	summary_entries(&text);
	summary_tables(&text);
	tdt__string_free(&text.line);
	tdt__string_free(&text.part);
}
