// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The sections of a summary's text whose entries have a time, and perhaps a stack. */

#include "summary_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <tdt/layout/recording.h>

#include "forms.h"
#include "frame.h"
#include "terminal.h"
#include "view.h"
#include "words.h"

enum {
	FRAMES_SHOWN = 3 /* of a stack, unless all are wanted */
};

/* ---- Parts of an entry ---- */

/* A part: `task 7 "a"`; and another one with the spawn place of a task that has no name. */
static void task_part(struct tdt__summary_lines *text, uint32_t index)
{
	const struct tdt__recorded_task *task = &text->tasks[index];

	tdt__string_puts(&text->part, "task ");
	tdt__lines_task(text, &text->part, index);
	tdt__lines_end_part(text);
	if (task->name[0] != '\0' || task->file[0] == '\0')
		return;
	tdt__spawn_place(&text->part, task->file, task->line, task->column, text->options);
	tdt__lines_end_part(text);
}

/* Whether `at` is on another day than the end, as far as the reader has to be told. */
static bool is_long_ago(const struct tdt__summary *summary, uint64_t at)
{
	return summary->end > at && summary->end - at > UINT64_C(12) * 3600 * 1000000000;
}

/* The beginning of an entry: how long (0: nothing is said of that), and when. */
static void begin_entry(struct tdt__summary_lines *text, uint64_t ns, uint64_t at,
			const char *color)
{
	tdt__lines_begin(text);
	if (ns != 0)
		tdt__string_puts(&text->part, TDT__DURATION(ns));
	tdt__lines_add_right(text, TDT__LINES_INDENT - 2, color);
	tdt__string_puts(&text->line, "  ");
	text->column = TDT__LINES_INDENT;
	tdt__string_printf(
	    &text->part, "%s ",
	    TDT__WALL_CLOCK(at + text->summary->real, is_long_ago(text->summary, at)));
	tdt__lines_end_part(text);
}

/* A part: "(12 waits, 1.204 s in all)". */
static void in_all(struct tdt__summary_lines *text, uint64_t n, const char *what, uint64_t total)
{
	if (n < 2)
		return;
	tdt__string_printf(&text->part, "(%s%s %s in all)", TDT__NUMBER(n), what,
			   TDT__DURATION(total));
	tdt__lines_end_part(text);
}

/* A part: "on thread 4711". */
static void on_thread(struct tdt__summary_lines *text, uint32_t thread)
{
	tdt__string_printf(&text->part, "on thread %" PRIu32, thread);
	tdt__lines_end_part(text);
}

/* A part, unless `going_on` is false. */
static void still_going(struct tdt__summary_lines *text, bool going_on)
{
	if (!going_on)
		return;
	tdt__string_puts(&text->part, "(not over)");
	tdt__lines_end_part(text);
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
static void one_frame(struct tdt__summary_lines *text, const struct tdt_frame *frame, bool users)
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
static void innermost_frames(struct tdt__summary_lines *text, const struct tdt__view *view)
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
		tdt__lines_end_part(text);
		before = "from ";
		n++;
	}
}

static int short_stack(struct tdt__summary_lines *text, const struct tdt_node *root)
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
static int whole_stack(struct tdt__summary_lines *text, const struct tdt_node *root)
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
static void end_entry(struct tdt__summary_lines *text, uint32_t stack)
{
	const struct tdt_node *root = tdt__summary_root(text->form, stack);
	int err = 0;

	if (root != NULL && !text->form->full)
		err = short_stack(text, root);
	tdt__lines_end(text);
	if (root != NULL && text->form->full)
		err = whole_stack(text, root);
	if (err != 0)
		text->error = err;
}

/* ---- The sections ---- */

static void panic_lines(struct tdt__summary_lines *text, const struct tdt__summary_panic *panic)
{
	begin_entry(text, 0, panic->at, "");
	task_part(text, panic->task);
	on_thread(text, panic->thread);
	tdt__lines_end(text);
}

static void lost_lines(struct tdt__summary_lines *text, const struct tdt__summary_lost *lost)
{
	begin_entry(text, lost->ns, lost->at, TDT__RED);
	task_part(text, lost->task);
	tdt__lines_end(text);
}

static void slow_polls(struct tdt__summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;
	const struct tdt_recording *header = &summary->recording->header;

	if (summary->slow.n == 0)
		return;
	tdt__lines_heading(text, "slowest polls");
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
static void wait_parts(struct tdt__summary_lines *text, const struct tdt__summary_wait *wait)
{
	struct tdt_wait what = wait->what;
	const char *owner =
	    wait->owner != TDT__NO_TASK ? tdt__name_or_null(text->tasks[wait->owner].name) : NULL;

	if (what.kind == TDT_WAIT_UNKNOWN && what.object == 0 && what.owner == 0)
		return;
	tdt__wait_for(&text->part, &what, text->tasks[wait->task].id, owner, text->options);
	tdt__lines_end_part(text);
}

static void waits(struct tdt__summary_lines *text, const char *words,
		  const struct tdt__summary_wait *wait, size_t n, const char *color)
{
	if (n == 0)
		return;
	tdt__lines_heading(text, words);
	for (; n > 0; n--, wait++) {
		begin_entry(text, wait->ns, wait->start, color);
		task_part(text, wait->task);
		wait_parts(text, wait);
		still_going(text, wait->going_on);
		in_all(text, wait->n, " waits,", wait->total);
		end_entry(text, wait->stack);
	}
}

static void starved_lines(struct tdt__summary_lines *text, const struct tdt__summary_starved *entry)
{
	begin_entry(text, entry->ns, entry->at, TDT__YELLOW);
	task_part(text, entry->task);
	on_thread(text, entry->thread);
	if (entry->behind != TDT__NO_TASK) {
		tdt__string_puts(&text->part, "behind");
		tdt__lines_end_part(text);
		task_part(text, entry->behind);
	}
	in_all(text, entry->n, " times,", entry->total);
	tdt__string_printf(&text->part, "(%s, none by another worker)",
			   TDT__COUNTED(entry->polls, "poll"));
	tdt__lines_end_part(text);
	tdt__lines_end(text);
}

static void delay_lines(struct tdt__summary_lines *text, const struct tdt__summary_delay *delay)
{
	begin_entry(text, delay->ns, delay->at, TDT__YELLOW);
	task_part(text, delay->task);
	if (delay->thread != 0)
		on_thread(text, delay->thread);
	still_going(text, delay->going_on);
	tdt__lines_end(text);
}

void tdt__summary_entries(struct tdt__summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;

	TDT__LINES_SECTION(text, "panicked", summary->panics, panic_lines);
	tdt__lines_say_more(text, summary->panics.n, summary->panics.found);
	TDT__LINES_SECTION(text, "waits that only a request has ended: lost wake-ups",
			   summary->lost_wakeups, lost_lines);
	slow_polls(text);
	waits(text, "longest waits for locks", summary->locks.entry, summary->locks.n, TDT__RED);
	TDT__LINES_SECTION(
	    text, "tasks that waited for one busy worker while another worker was parked",
	    summary->starved, starved_lines);
	TDT__LINES_SECTION(text, "longest waits for a worker", summary->delays, delay_lines);
	tdt__lines_say_more(text, summary->delays.n, summary->delays.found);
	waits(text, "longest other waits", summary->waits.entry, summary->waits.n, "");
}
