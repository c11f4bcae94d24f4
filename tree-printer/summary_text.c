// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The summary of a recording as text, for a reader who has just been woken by a pager: 80 columns,
 * what is wrong comes first, and nothing is said of what is not there.
 *
 *	echo-server[4711]: 12.40 s until 2026-11-22 03:12:44.120
 *	1,204,331 polls, 803,112 wake-ups, 10,003 tasks, 1 panicked
 *
 *	panicked
 *	             03:12:42.100  task 13 "rash" on thread 4713
 *
 *	slowest polls
 *	   50.11 ms  03:12:43.120  task 7 "parser" on thread 4712
 *	             in spin at demo/x.c:18:11 from parser_poll at demo/x.c:40:3
 *
 *	longest waits for locks
 *	   80.02 ms  03:12:43.120  task 9 "reader"
 *	             for a mutex "table" (0x7f1208) held by task 8 "writer"
 *
 *	tasks that waited for one busy worker while another worker was parked
 *	   40.00 ms  03:12:43.121  task 12 "pinned" on thread 4712 behind task 7 "parser"
 *	             (112 polls, none by another worker)
 *
 *	from wake-up to poll           median       99 %       most      polls
 *	   "conn #"                  12.31 us   1.204 ms   49.80 ms     80,112
 *
 *	busiest tasks                     CPU   in polls      polls
 *	   7 "parser"                  46.1 %    1.204 s        112
 *
 *	threads                       polling     parked    neither      polls
 *	   4712 "tdt-worker-0"         93.1 %      2.1 %      4.8 %     61,112
 */

#include <config.h>

#include "summaries.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tdt/recording.h>

#include "forms.h"
#include "frame.h"
#include "terminal.h"
#include "view.h"
#include "words.h"

#include "recording/read.h"

enum {
	COLUMNS = 80,
	INDENT = 13,      /* of the lines below the first one of an entry */
	NAME_COLUMNS = 26, /* of the first column of a table, with its indent */
	FRAMES_SHOWN = 3  /* of a stack, unless all are wanted */
};

/* While a summary is written. */
struct summary_text {
	struct tdt__out *out;
	const struct tdt__summary_form *form;
	const struct tdt__summary *summary;
	const struct tdt_print_options *options;
	const struct tdt__recorded_task *tasks;
	const struct tdt__recorded_thread *threads;
	struct tdt__string line; /* the lines of one entry */
	struct tdt__string part; /* the next part of them */
	size_t column;           /* where the last of these lines ends */
	int error;
};

/* ---- Lines that are broken between their parts ---- */

/* How many columns UTF-8 takes, if each character takes one. */
static size_t columns_of(const struct tdt__string *string)
{
	size_t n = 0;

	for (size_t i = 0; i < string->n; i++)
		n += ((unsigned char)string->bytes[i] & 0xc0) != 0x80;
	return n;
}

/* Begin the lines of an entry. */
static void begin_lines(struct summary_text *text)
{
	text->line.n = 0;
	text->part.n = 0;
	text->column = 0;
}

static void indent_line(struct summary_text *text)
{
	while (text->line.n > 0 && text->line.bytes[text->line.n - 1] == ' ')
		text->line.n--;
	tdt__string_printf(&text->line, "\n%*s", INDENT, "");
	text->column = INDENT;
}

/* Add the part that was made, behind a space or on a line of its own. */
static void end_part(struct summary_text *text)
{
	size_t n = columns_of(&text->part);

	if (n == 0)
		return;
	if (text->column > INDENT && text->column + 1 + n > COLUMNS) {
		indent_line(text);
	} else if (text->column > INDENT) {
		tdt__string_puts(&text->line, " ");
		text->column++;
	}
	tdt__string_add(&text->line, text->part.bytes, text->part.n);
	text->column += n;
	text->part.n = 0;
}

/* Add the part that was made so that it ends at the right of `columns` columns. */
static void add_right(struct summary_text *text, size_t columns, const char *color)
{
	size_t n = columns_of(&text->part);

	tdt__string_printf(&text->line, "%*s", n < columns ? (int)(columns - n) : 0, "");
	tdt__color(&text->line, color, text->options);
	tdt__string_add(&text->line, text->part.bytes, text->part.n);
	tdt__color(&text->line, TDT__PLAIN, text->options);
	text->part.n = 0;
}

/* Write the lines.  Without memory for them they are left out. */
static void end_lines(struct summary_text *text)
{
	if (text->line.failed || text->part.failed) {
		text->error = -ENOMEM;
		tdt__string_free(&text->line);
		tdt__string_free(&text->part);
		return;
	}
	tdt__out_add(text->out, text->line.bytes, text->line.n);
	tdt__out_add(text->out, "\n", 1);
}

/* ---- Words ---- */

/* A duration without the space before it. */
static void bare_duration(struct tdt__string *string, uint64_t ns)
{
	size_t before = string->n;

	tdt__duration(string, ns);
	if (string->failed)
		return;
	memmove(string->bytes + before, string->bytes + before + 1, string->n - before - 1);
	string->n--;
}

/* The time of day, with the date if `dated`. */
static void wall_clock(struct tdt__string *string, const struct tdt__summary *summary, uint64_t at,
		       bool dated)
{
	uint64_t real = at + summary->real;
	time_t seconds = (time_t)(real / 1000000000);
	struct tm tm;
	char text[32] = "?";

	if (localtime_r(&seconds, &tm) != NULL)
		strftime(text, sizeof(text), dated ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	tdt__string_printf(string, "%s.%03u", text, (unsigned)(real / 1000000 % 1000));
}

/* Whether `at` is on another day than the end, as far as the reader has to be told. */
static bool is_long_ago(const struct tdt__summary *summary, uint64_t at)
{
	return summary->end > at && summary->end - at > UINT64_C(12) * 3600 * 1000000000;
}

/* The functions of words.h want NULL for a name that is not known. */
static const char *name_or_null(const char *name)
{
	return name[0] != '\0' ? name : NULL;
}

static void summary_task(struct summary_text *text, struct tdt__string *string, uint32_t index)
{
	const struct tdt__recorded_task *task = &text->tasks[index];

	tdt__task_name(string, task->id, name_or_null(task->name), text->options);
}

/* The place where the task was spawned. */
static void spawn_place(struct summary_text *text, struct tdt__string *string,
			const struct tdt__recorded_task *task)
{
	tdt__string_puts(string, "spawned at ");
	tdt__string_escape(string, task->file, text->options->utf8 == TDT_PRINT_YES, '\0');
	if (task->line != 0)
		tdt__string_printf(string, ":%" PRIu32, task->line);
	if (task->line != 0 && task->column != 0)
		tdt__string_printf(string, ":%" PRIu32, task->column);
}

/* A part: `task 7 "a"`; and another one with the spawn place of a task that has no name. */
static void task_part(struct summary_text *text, uint32_t index)
{
	const struct tdt__recorded_task *task = &text->tasks[index];

	tdt__string_puts(&text->part, "task ");
	summary_task(text, &text->part, index);
	end_part(text);
	if (task->name[0] != '\0' || task->file[0] == '\0')
		return;
	spawn_place(text, &text->part, task);
	end_part(text);
}

static void counted(struct tdt__string *string, uint64_t n, const char *one, const char *many)
{
	tdt__count(string, n);
	tdt__string_puts(string, n == 1 ? one : many);
}

/* A section's heading, with an empty line before it. */
static void heading(struct summary_text *text, const char *words)
{
	begin_lines(text);
	tdt__string_puts(&text->line, "\n");
	tdt__color(&text->line, TDT__BOLD, text->options);
	tdt__string_puts(&text->line, words);
	tdt__color(&text->line, TDT__PLAIN, text->options);
	end_lines(text);
}

/* Say how many entries are not shown. */
static void say_more(struct summary_text *text, size_t shown, size_t found)
{
	if (found <= shown)
		return;
	begin_lines(text);
	tdt__string_puts(&text->line, "   and ");
	counted(&text->line, found - shown, " more", " more");
	end_lines(text);
}

/* The beginning of an entry: how long (0: nothing is said of that), and when. */
static void begin_entry(struct summary_text *text, uint64_t ns, uint64_t at, const char *color)
{
	begin_lines(text);
	if (ns != 0)
		bare_duration(&text->part, ns);
	add_right(text, INDENT - 2, color);
	tdt__string_puts(&text->line, "  ");
	text->column = INDENT;
	wall_clock(&text->part, text->summary, at, is_long_ago(text->summary, at));
	tdt__string_puts(&text->part, " ");
	end_part(text);
}

/* A part: "(12 waits, 1.204 s in all)". */
static void in_all(struct summary_text *text, uint64_t n, const char *what, uint64_t total)
{
	if (n < 2)
		return;
	tdt__string_puts(&text->part, "(");
	tdt__count(&text->part, n);
	tdt__string_puts(&text->part, what);
	tdt__duration(&text->part, total);
	tdt__string_puts(&text->part, " in all)");
	end_part(text);
}

/* A part: "on thread 4711". */
static void on_thread(struct summary_text *text, uint32_t thread)
{
	tdt__string_printf(&text->part, "on thread %" PRIu32, thread);
	end_part(text);
}

/* A part, unless `going_on` is false. */
static void still_going(struct summary_text *text, bool going_on)
{
	if (!going_on)
		return;
	tdt__string_puts(&text->part, "(not over)");
	end_part(text);
}

/* ---- Stacks ---- */

/* The module of the outermost shown frame, which is the poll function: the user's code. */
static const char *users_module(const struct tdt__view *view)
{
	const struct tdt_frame *frame =
	    view->n > 1 && view->row[1].node != NULL ? tdt_node_frame(view->row[1].node) : NULL;

	return frame != NULL && frame->module != NULL ? frame->module : "";
}

/* Add a frame to the part: with its place if it is in the user's code. */
static void one_frame(struct summary_text *text, const struct tdt_frame *frame, bool users)
{
	struct tdt_print_options plain = *text->options;

	plain.color = TDT_PRINT_NO;
	if (users)
		tdt__frame_line(&text->part, frame, &plain);
	else
		tdt__frame_name(&text->part, frame, &plain);
}

/*
 * The innermost frame, and then the innermost ones of the user's code: "in memset from fill at
 * x.c:18:11 from parser_poll at x.c:40:3".
 */
static void innermost_frames(struct summary_text *text, const struct tdt__view *view)
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
		one_frame(text, frame, users);
		end_part(text);
		before = "from ";
		n++;
	}
}

static int short_stack(struct summary_text *text, const struct tdt_node *root)
{
	struct tdt__view view;
	int err = tdt__view_make(&view, root, text->options, NULL);

	if (err != 0)
		return err;
	innermost_frames(text, &view);
	free(view.row);
	return 0;
}

/* Write the whole stack below the entry. */
static int whole_stack(struct summary_text *text, const struct tdt_node *root)
{
	struct tdt_print_options options = *text->options;
	struct tdt__frames frames = { .options = &options };
	int err;

	options.full = 1;
	err = tdt__print_tree(text->out, NULL, root, &frames, NULL);

	tdt__frames_fini(&frames);
	return err;
}

/* Write the entry, with the stack `stack` (0: there is none). */
static void end_entry(struct summary_text *text, uint32_t stack)
{
	const struct tdt_node *root = tdt__summary_root(text->form, stack);
	int err = 0;

	if (root != NULL && !text->form->full)
		err = short_stack(text, root);
	end_lines(text);
	if (root != NULL && text->form->full)
		err = whole_stack(text, root);
	if (err != 0)
		text->error = err;
}

/* ---- The head ---- */

static void head_counts(struct summary_text *text)
{
	const struct tdt__summary *summary = text->summary;

	begin_lines(text);
	counted(&text->line, summary->polls, " poll, ", " polls, ");
	counted(&text->line, summary->wakes, " wake-up, ", " wake-ups, ");
	tdt__count_tasks(&text->line, summary->tasks);
	if (summary->panicked != 0) {
		tdt__string_puts(&text->line, ", ");
		tdt__color(&text->line, TDT__RED, text->options);
		tdt__count(&text->line, summary->panicked);
		tdt__string_puts(&text->line, " panicked");
		tdt__color(&text->line, TDT__PLAIN, text->options);
	}
	end_lines(text);
}

static void head_missed(struct summary_text *text)
{
	const struct tdt_recording *header = tdt__recording_header(text->summary->recording);

	if (header->missed == 0)
		return;
	begin_lines(text);
	counted(&text->line, header->missed, " event was", " events were");
	tdt__string_puts(&text->line, " not recorded, ");
	counted(&text->line, header->missed_polls, " poll", " polls");
	tdt__string_puts(&text->line, " among them: no ring was left");
	end_lines(text);
}

/* The thread whose ring reaches back least far decides from when on all is known. */
static void head_reach(struct summary_text *text)
{
	const struct tdt__summary *summary = text->summary;

	if (summary->whole <= summary->start || summary->whole > summary->end)
		return;
	begin_lines(text);
	tdt__string_puts(&text->line, "Waits and latencies are those of the last");
	tdt__duration(&text->line, summary->end - summary->whole);
	tdt__string_puts(&text->line, ": older polls were overwritten.");
	end_lines(text);
}

static void summary_head(struct summary_text *text)
{
	const struct tdt__summary *summary = text->summary;
	const struct tdt_recording *header = tdt__recording_header(summary->recording);
	struct tdt__string *line = &text->line;

	begin_lines(text);
	tdt__color(line, TDT__BOLD, text->options);
	tdt__string_escape(line, header->program, text->options->utf8 == TDT_PRINT_YES, '\0');
	tdt__string_printf(line, "[%" PRIu32 "]", header->pid);
	tdt__color(line, TDT__PLAIN, text->options);
	tdt__string_puts(line, ":");
	tdt__duration(line, summary->end - summary->start);
	tdt__string_puts(line, " until ");
	wall_clock(line, summary, summary->end, true);
	if (header->recording == 0)
		tdt__string_puts(line, "\nThe recorder was stopped then.");
	end_lines(text);
	head_counts(text);
	head_reach(text);
	head_missed(text);
}

/* ---- The sections ---- */

static void panics(struct summary_text *text)
{
	const struct tdt__summary *summary = text->summary;

	if (summary->panics.n == 0)
		return;
	heading(text, "panicked");
	for (size_t i = 0; i < summary->panics.n; i++) {
		const struct tdt__summary_panic *panic = &summary->panics.entry[i];

		begin_entry(text, 0, panic->at, "");
		task_part(text, panic->task);
		on_thread(text, panic->thread);
		end_lines(text);
	}
	say_more(text, summary->panics.n, summary->panics.found);
}

static void slow_polls(struct summary_text *text)
{
	const struct tdt__summary *summary = text->summary;
	const struct tdt_recording *header = tdt__recording_header(summary->recording);

	if (summary->slow.n == 0)
		return;
	heading(text, "slowest polls");
	for (size_t i = 0; i < summary->slow.n; i++) {
		const struct tdt__summary_poll *poll = &summary->slow.entry[i];

		if (i > 0 && poll->ns < header->long_poll && !text->form->full)
			break; /* it is not slow */
		begin_entry(text, poll->ns, poll->start,
			    poll->ns >= header->long_poll ? TDT__RED : "");
		task_part(text, poll->task);
		on_thread(text, poll->thread);
		still_going(text, poll->going_on);
		end_entry(text, poll->stack);
	}
}

/* The parts of what is waited for, and by which task it is held. */
static void wait_parts(struct summary_text *text, const struct tdt__summary_wait *wait)
{
	struct tdt_wait what = wait->what;
	const char *owner = wait->owner != TDT__NO_TASK
				? name_or_null(text->tasks[wait->owner].name)
				: NULL;

	if (what.kind == TDT_WAIT_UNKNOWN && what.object == 0 && what.owner == 0)
		return;
	tdt__wait_for(&text->part, &what, text->tasks[wait->task].id, owner, text->options);
	end_part(text);
}

static void waits(struct summary_text *text, const char *words,
		  const struct tdt__summary_wait *wait, size_t n, const char *color)
{
	if (n == 0)
		return;
	heading(text, words);
	for (; n > 0; n--, wait++) {
		begin_entry(text, wait->ns, wait->start, color);
		task_part(text, wait->task);
		wait_parts(text, wait);
		still_going(text, wait->going_on);
		in_all(text, wait->n, " waits,", wait->total);
		end_entry(text, wait->stack);
	}
}

static void starved(struct summary_text *text)
{
	const struct tdt__summary *summary = text->summary;

	if (summary->starved.n == 0)
		return;
	heading(text, "tasks that waited for one busy worker while another worker was parked");
	for (size_t i = 0; i < summary->starved.n; i++) {
		const struct tdt__summary_starved *entry = &summary->starved.entry[i];

		begin_entry(text, entry->ns, entry->at, TDT__YELLOW);
		task_part(text, entry->task);
		on_thread(text, entry->thread);
		if (entry->behind != TDT__NO_TASK) {
			tdt__string_puts(&text->part, "behind");
			end_part(text);
			task_part(text, entry->behind);
		}
		in_all(text, entry->n, " times,", entry->total);
		tdt__string_puts(&text->part, "(");
		counted(&text->part, entry->polls, " poll, none", " polls, none");
		tdt__string_puts(&text->part, " by another worker)");
		end_part(text);
		end_lines(text);
	}
}

/* ---- Tables ---- */

/* The first cell of a row: cut, so that the columns stay in line. */
static void name_cell(struct summary_text *text)
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

static void count_cell(struct summary_text *text, uint64_t n)
{
	tdt__count(&text->part, n);
	add_right(text, 11, "");
}

static void duration_cell(struct summary_text *text, uint64_t ns)
{
	bare_duration(&text->part, ns);
	add_right(text, 11, "");
}

static void share_cell(struct summary_text *text, double share)
{
	unsigned tenths = (unsigned)(tdt__summary_share(share) * 1000 + 0.5);

	tdt__string_printf(&text->part, "%u.%u %%", tenths / 10, tenths % 10);
	add_right(text, 11, "");
}

/* The heading of a table with three or four columns behind the first one. */
static void table_heading(struct summary_text *text, const char *const cells[5])
{
	char words[128];

	snprintf(words, sizeof(words), "%-*s%11s%11s%11s%11s", NAME_COLUMNS, cells[0], cells[1],
		 cells[2], cells[3], cells[4]);
	for (size_t n = strlen(words); n > 0 && words[n - 1] == ' ';)
		words[--n] = '\0';
	heading(text, words);
}

/* The name of a family in which the names have other numbers: "conn #". */
static void name_with_numbers(struct summary_text *text, const char *name)
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
static void family_name(struct summary_text *text, const struct tdt__summary_latency *family)
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
		spawn_place(text, &text->part, task);
	} else {
		tdt__string_puts(&text->part, "(unknown tasks)");
	}
}

static void latencies(struct summary_text *text)
{
	static const char *const cells[] = { "from wake-up to poll", "median", "99 %", "most",
					     "polls" };
	const struct tdt__summary *summary = text->summary;

	if (summary->latency.n == 0)
		return;
	table_heading(text, cells);
	for (size_t i = 0; i < summary->latency.n; i++) {
		const struct tdt__summary_latency *entry = &summary->latency.entry[i];

		begin_lines(text);
		family_name(text, entry);
		name_cell(text);
		duration_cell(text, entry->median);
		duration_cell(text, entry->p99);
		duration_cell(text, entry->most);
		count_cell(text, entry->n);
		end_lines(text);
	}
	say_more(text, summary->latency.n, summary->latency.found);
}

static void busiest(struct summary_text *text)
{
	static const char *const cells[] = { "busiest tasks", "CPU", "in polls", "polls", "" };
	const struct tdt__summary *summary = text->summary;

	if (summary->busy.n == 0)
		return;
	table_heading(text, cells);
	for (size_t i = 0; i < summary->busy.n; i++) {
		const struct tdt__summary_busy *entry = &summary->busy.entry[i];

		begin_lines(text);
		summary_task(text, &text->part, entry->task);
		name_cell(text);
		share_cell(text, entry->share);
		duration_cell(text, entry->ns);
		count_cell(text, entry->polls);
		end_lines(text);
	}
}

/* What a thread did when the recording ended, if it was not parked. */
static void thread_now(struct summary_text *text, const struct tdt__summary_worker *worker)
{
	if (worker->task == TDT__NO_TASK)
		return;
	text->column = COLUMNS; /* on a line of its own */
	tdt__string_puts(&text->part, "polls task ");
	summary_task(text, &text->part, worker->task);
	tdt__string_puts(&text->part, " for");
	tdt__duration(&text->part, text->summary->end - worker->since);
	end_part(text);
}

static void workers(struct summary_text *text)
{
	static const char *const cells[] = { "threads", "polling", "parked", "neither", "polls" };
	const struct tdt__summary *summary = text->summary;

	if (summary->workers.n == 0)
		return;
	table_heading(text, cells);
	for (size_t i = 0; i < summary->workers.n; i++) {
		const struct tdt__summary_worker *worker = &summary->workers.entry[i];
		double span = (double)(worker->end - worker->start);
		double polling = (double)worker->polling / span;
		double parked = (double)worker->parked / span;

		begin_lines(text);
		tdt__task_name(&text->part, worker->thread, name_or_null(worker->name),
			       text->options);
		name_cell(text);
		share_cell(text, polling);
		share_cell(text, parked);
		share_cell(text, polling + parked < 1 ? 1 - polling - parked : 0);
		count_cell(text, worker->polls);
		thread_now(text, worker);
		end_lines(text);
	}
	say_more(text, summary->workers.n, summary->workers.found);
}

static void delays(struct summary_text *text)
{
	const struct tdt__summary *summary = text->summary;

	if (summary->delays.n == 0)
		return;
	heading(text, "longest waits for a worker");
	for (size_t i = 0; i < summary->delays.n; i++) {
		const struct tdt__summary_delay *delay = &summary->delays.entry[i];

		begin_entry(text, delay->ns, delay->at, TDT__YELLOW);
		task_part(text, delay->task);
		if (delay->thread != 0)
			on_thread(text, delay->thread);
		still_going(text, delay->going_on);
		end_lines(text);
	}
	say_more(text, summary->delays.n, summary->delays.found);
}

static void ring_reaches(struct summary_text *text)
{
	static const char *const cells[] = { "rings", "back to", "slots", "lost", "" };
	static const char *const kinds[] = { "", "  polls", "  no polls", "  remarkable",
					     "  of the recorder" };
	size_t n;
	const struct tdt__recorded_ring *ring = tdt__recording_rings(text->summary->recording, &n);

	if (!text->form->full || n == 0)
		return;
	table_heading(text, cells);
	for (; n > 0; n--, ring++) {
		const struct tdt__recorded_thread *thread = &text->threads[ring->thread];

		begin_lines(text);
		tdt__task_name(&text->part, thread->id, name_or_null(thread->name), text->options);
		name_cell(text);
		duration_cell(text, text->summary->end - ring->from);
		count_cell(text, ring->slots);
		count_cell(text, ring->lost);
		tdt__string_puts(&text->line,
				 ring->kind <= TDT_RING_SERVICE ? kinds[ring->kind] : "");
		end_lines(text);
	}
}

int tdt__summary_text(struct tdt__out *out, const struct tdt__summary_form *form)
{
	const struct tdt__summary *summary = form->summary;
	struct summary_text text = {
		.out = out, .form = form, .summary = summary, .options = form->options
	};
	size_t n;

	text.tasks = tdt__recording_tasks(summary->recording, &n);
	text.threads = tdt__recording_threads(summary->recording, &n);

	summary_head(&text);
	panics(&text);
	slow_polls(&text);
	waits(&text, "longest waits for locks", summary->locks.entry, summary->locks.n, TDT__RED);
	starved(&text);
	delays(&text);
	waits(&text, "longest other waits", summary->waits.entry, summary->waits.n, "");
	latencies(&text);
	busiest(&text);
	workers(&text);
	ring_reaches(&text);
	tdt__string_free(&text.line);
	tdt__string_free(&text.part);
	return text.error;
}
