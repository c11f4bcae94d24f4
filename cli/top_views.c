// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Views of tdt top below its first lines: the threads, the times, the open task and the help. */

#include "cli/top_views.h"

#include <inttypes.h>

#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

/* --- Threads ------------------------------------------------------------------------ */

static const char *word_of_thread(const struct top_thread *thread)
{
	if (thread->polls)
		return "polling";
	if (thread->parked)
		return "parked";
	return thread->worker ? "between polls" : "no worker";
}

static void thread_row(struct screen *screen, const struct top_thread *thread)
{
	struct tdt__string cell = { 0 };

	tdt__string_printf(&cell, "%" PRIu32, thread->id);
	top_take_cell(screen, &cell, 8);
	top_add_cell(screen, thread->name, 16, false);
	top_add_cell(screen, word_of_thread(thread), 13, false);
	top_time_cell(screen, thread->ns, 9);
	cell = (struct tdt__string){ 0 };
	if (thread->cpu < 0)
		tdt__string_puts(&cell, "-");
	else
		tdt__string_printf(&cell, "%.0f %%", 100 * thread->cpu);
	top_take_cell(screen, &cell, 6);
	if (thread->polls) {
		tdt__string_printf(&screen->line, "%" PRIu64 " ", thread->task);
		tdt__string_puts(&screen->line, thread->task_name);
	}
}

void top_view_threads(struct screen *screen)
{
	const struct top_round *round = screen->round;
	unsigned room;
	size_t first;

	top_begin_titles(screen);
	top_add_cell(screen, "THREAD", 8, true);
	top_add_cell(screen, "NAME", 16, false);
	top_add_cell(screen, "STATE", 13, false);
	top_add_cell(screen, "FOR", 9, true);
	top_add_cell(screen, "CPU", 6, true);
	top_end_titles(screen, "TASK");
	room = top_lines_left(screen);
	first = top_first_row(screen, room);
	for (size_t i = first; i < round->n_threads && i < first + room; i++) {
		bool selected = top_begin_row(screen, i);

		thread_row(screen, &round->thread[i]);
		top_end_row(screen, selected);
	}
}

/* --- Times -------------------------------------------------------------------------- */

static void histogram_line(struct screen *screen, const char *what,
			   const struct top_histogram *histogram)
{
	struct tdt__string *line = &screen->line;

	tdt__count(line, histogram->total);
	tdt__string_puts(line, what);
	if (histogram->total > 0) {
		tdt__string_puts(line, ": 50 %");
		top_add_most(screen, top_histogram_share(histogram, 0.5));
		tdt__string_puts(line, ", 99 %");
		top_add_most(screen, top_histogram_share(histogram, 0.99));
		tdt__string_puts(line, ", longest ");
		tdt__duration_cell(line, histogram->most);
	}
	top_end_line(screen);
}

static void add_bar(struct screen *screen, uint64_t n, uint64_t most)
{
	unsigned width = screen->size->width >= 100 ? 28 : 14;
	unsigned own = most > 0 ? (unsigned)((double)n / (double)most * width) : 0;

	if (n > 0 && own == 0)
		own = 1;
	for (unsigned i = 0; i < own; i++)
		tdt__string_puts(&screen->line, screen->print->utf8 == TDT_PRINT_YES ? "█" : "#");
	top_add_blanks(&screen->line, width - own + 1);
}

/* How many durations there are in `step` buckets from `i` on. */
static uint64_t in_buckets(const struct top_histogram *histogram, unsigned i, unsigned step)
{
	uint64_t n = 0;

	for (unsigned k = i; k < i + step && k < TOP_BUCKETS; k++)
		n += histogram->n[k];
	return n;
}

static void bucket_cells(struct screen *screen, const struct top_histogram *histogram, unsigned i,
			 unsigned step)
{
	uint64_t n = in_buckets(histogram, i, step), most = 0;

	for (unsigned k = i % step; k < TOP_BUCKETS; k += step)
		if (in_buckets(histogram, k, step) > most)
			most = in_buckets(histogram, k, step);
	top_number_cell(screen, n, 9);
	add_bar(screen, n, most);
}

static void bucket_row(struct screen *screen, unsigned i, unsigned step)
{
	const struct top_times *times = &screen->round->times;

	if (i + step >= TOP_BUCKETS)
		top_add_cell(screen, "longer", 11, true);
	else
		top_time_cell(screen, top_bucket_ns(i + step - 1), 11);
	bucket_cells(screen, &times->polls, i, step);
	bucket_cells(screen, &times->latencies, i, step);
	top_end_line(screen);
}

/* On a low screen a row stands for several buckets. */
static void bucket_rows(struct screen *screen)
{
	const struct top_times *times = &screen->round->times;
	unsigned first = 0, last = TOP_BUCKETS, step = 1;

	while (first < last && times->polls.n[first] + times->latencies.n[first] == 0)
		first++;
	while (last > first && times->polls.n[last - 1] + times->latencies.n[last - 1] == 0)
		last--;
	while (step < TOP_BUCKETS && (last - first + step - 1) / step > top_lines_left(screen))
		step++;
	for (unsigned i = first; i < last; i += step)
		bucket_row(screen, i, step);
}

void top_view_times(struct screen *screen)
{
	const struct top_times *times = &screen->round->times;

	if (!times->there) {
		top_put_line(screen, NULL, times->trouble[0] != '\0' ? times->trouble
								  : "reading the recording...");
		top_put_line(screen, NULL, "tdt set PID record=16M has the process record.");
		return;
	}
	tdt__string_puts(&screen->line, "in the last ");
	tdt__duration_cell(&screen->line, times->window_ns);
	tdt__string_puts(&screen->line, times->runs ? " of the recording"
						    : " of the recording, which was stopped");
	top_end_line(screen);
	histogram_line(screen, " polls", &times->polls);
	histogram_line(screen, " from wake-up to poll", &times->latencies);
	top_put_line(screen, NULL, "");
	top_begin_titles(screen);
	top_add_cell(screen, "BELOW", 11, true);
	top_add_cell(screen, "POLLS", 9, true);
	top_add_blanks(&screen->line, screen->size->width >= 100 ? 29 : 15);
	top_end_titles(screen, "WAKE TO POLL");
	bucket_rows(screen);
}

/* --- The open task ------------------------------------------------------------------ */

void top_view_tree(struct screen *screen)
{
	const struct top_round *round = screen->round;
	size_t skip = screen->choice->at, begin = 0;

	if (!round->is_there) {
		tdt__string_printf(&screen->line, "task %" PRIu64 " is not there (any more)",
				   screen->choice->question.id);
		top_end_line(screen);
		return;
	}
	for (size_t i = 0; i < round->tree_size && top_lines_left(screen) > 0; i++) {
		if (round->tree[i] != '\n')
			continue;
		if (skip > 0) {
			skip--;
		} else {
			tdt__string_add(&screen->line, round->tree + begin, i - begin);
			tdt__color(&screen->line, TDT__PLAIN, screen->print);
			top_end_line(screen);
		}
		begin = i + 1;
	}
}

/* --- Help --------------------------------------------------------------------------- */

void top_view_help(struct screen *screen)
{
	static const char *const help[] = {
		"1 2 3 4, Tab   tasks, places, threads, times (where a recording runs)",
		"arrows, j k    choose a row; PgUp, PgDn, Home, End",
		"Enter          the tree of the task, each round; Esc: back",
		"o              open the task that the open task waits for; Esc: back",
		"/              filter by a part of the name, a pattern as conn*, or the id",
		"s              all tasks, or those that wait, are runnable, are polled",
		"< >            sort by suspicion, time, age, polls, name, id; r: reversed",
		"space + -      pause, a shorter time between rounds, a longer one",
		"w              watch the tasks while tdt top runs, or no longer",
		"? q            this help, quit",
		"",
		"A round is one look. FOR: since when a task has been in its state. POLLS/S and",
		"CHANGE: since the last round. Red: a deadlock, or a poll of 10 ms or more.",
		"Yellow: woken 10 ms ago or more, and not polled since. A place is where the one",
		"way of a tree ends. (no tree): the task is not watched; w has all watched.",
		"(older tree): it was polled since, so it may wait elsewhere by now.",
		"tdt(1) explains each number, and what it cannot show.",
	};

	for (size_t i = 0; i < sizeof help / sizeof help[0] && top_lines_left(screen) > 0; i++)
		top_put_line(screen, NULL, help[i]);
}
