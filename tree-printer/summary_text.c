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
 *	busiest tasks                in polls       time      polls
 *	   7 "parser"                  46.1 %    1.204 s        112
 *
 *	threads                       polling     parked    neither      polls
 *	   4712 "tdt-worker-0"         93.1 %      2.1 %      4.8 %     61,112
 */

#include "summaries.h"

#include <inttypes.h>

#include <tdt/layout/recording.h>

#include "summary_lines.h"
#include "terminal.h"
#include "words.h"

/* ---- The head ---- */

static void head_counts(struct tdt__summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;

	tdt__lines_begin(text);
	tdt__string_printf(&text->line, "%s, %s, %s", TDT__COUNTED(summary->polls, "poll"),
			   TDT__COUNTED(summary->wakes, "wake-up"),
			   TDT__COUNTED(summary->tasks, "task"));
	if (summary->panicked != 0)
		tdt__string_printf(
		    &text->line, ", %s%s panicked%s", tdt__color_of(TDT__RED, text->options),
		    TDT__NUMBER(summary->panicked), tdt__color_of(TDT__PLAIN, text->options));
	tdt__lines_end(text);
}

static void head_missed(struct tdt__summary_lines *text)
{
	const struct tdt_recording *header = &text->summary->recording->header;

	if (header->missed == 0)
		return;
	tdt__lines_begin(text);
	tdt__string_printf(&text->line, "%s %s not recorded, %s among them: no ring was left",
			   TDT__COUNTED(header->missed, "event"),
			   header->missed == 1 ? "was" : "were",
			   TDT__COUNTED(header->missed_polls, "poll"));
	tdt__lines_end(text);
}

static void head_lost_stacks(struct tdt__summary_lines *text)
{
	uint32_t lost = tdt__recording_stacks_lost(text->summary->recording);

	if (lost == 0)
		return;
	tdt__lines_begin(text);
	tdt__string_printf(&text->line,
			   "%s %s not recorded: their table was full, or no capture was left",
			   TDT__COUNTED(lost, "stack"), lost == 1 ? "was" : "were");
	tdt__lines_end(text);
}

/* From when on no event is missing. */
static void head_reach(struct tdt__summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;

	if (summary->whole <= summary->start)
		return;
	tdt__lines_begin(text);
	if (summary->whole < summary->end) {
		tdt__string_printf(
		    &text->line,
		    "Waits and latencies are those of the last %s: older events are missing.",
		    TDT__DURATION(summary->end - summary->whole));
	} else {
		tdt__string_puts(&text->line, "Waits and latencies are not known: events are "
					      "missing up to the end.");
	}
	tdt__lines_end(text);
}

static void summary_head(struct tdt__summary_lines *text)
{
	const struct tdt__summary *summary = text->summary;
	const struct tdt_recording *header = &summary->recording->header;
	struct tdt__string *line = &text->line;

	tdt__lines_begin(text);
	tdt__color(line, TDT__BOLD, text->options);
	tdt__string_escape(line, header->program, text->options->utf8 == TDT_PRINT_YES, '\0');
	tdt__string_printf(
	    line, "[%" PRIu32 "]%s: %s until %s", header->pid,
	    tdt__color_of(TDT__PLAIN, text->options),
	    TDT__DURATION(tdt__recording_time(summary->recording, summary->start, summary->end)),
	    TDT__WALL_CLOCK(summary->end + summary->real, true));
	if (header->recording == 0)
		tdt__string_puts(line, "\nThe recorder was stopped then.");
	tdt__lines_end(text);
	head_counts(text);
	head_reach(text);
	head_missed(text);
	head_lost_stacks(text);
}

/* ---- All of it ---- */

int tdt__summary_text(struct tdt__out *out, const struct tdt__summary_form *form)
{
	const struct tdt__summary *summary = form->summary;
	struct tdt__summary_lines text = {
		.out = out, .form = form, .summary = summary, .options = form->options
	};

	text.tasks = summary->recording->task;
	text.threads = summary->recording->thread;

	summary_head(&text);
	tdt__summary_entries(&text);
	tdt__summary_tables(&text);
	tdt__string_free(&text.line);
	tdt__string_free(&text.part);
	return text.error;
}
