// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The lines of tdt top: see top_screen.h, and docs/top.md for a screen.  A low screen has fewer
 * lines at the top, and no places above the tasks.
 */

#include "cli/top_screen.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/top_lines.h"
#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

#define LEAST_HEIGHT 5
#define LEAST_WIDTH 20
#define LOW_SCREEN 16      /* below it, there are two lines at the top */
#define WITH_PLACES 20
#define HIGH_SCREEN 32

/* --- The top ------------------------------------------------------------------------ */

static void title_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	tdt__string_printf(line, "process %" PRIu32 ", libtdt %s", round->pid, round->library);
	if (round->copies > 1)
		tdt__string_printf(line, " (1 of %" PRIu32 " copies)", round->copies);
	if (screen->choice->ended || round->state == 'T' || round->state == 't')
		tdt__colored(line, TDT__RED,
			     screen->choice->ended ? ": it has ended" : ": stopped");
	tdt__string_puts(line, screen->choice->paused ? "; paused" : "; a round each ");
	if (!screen->choice->paused)
		tdt__string_puts(line, TDT__DURATION_CELL(screen->choice->interval));
	top_end_line(screen);
}

static void tasks_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	tdt__string_printf(line, "%s: %s waiting", TDT__COUNTED(round->tasks, "task"),
			   TDT__NUMBER(round->counts.waiting));
	if (round->counts.longest_wait_ns > 0)
		top_add_most(screen, round->counts.longest_wait_ns);
	tdt__string_printf(line, ", %s runnable, %s polling", TDT__NUMBER(round->counts.runnable),
			   TDT__NUMBER(round->counts.running));
	if (round->counts.longest_poll_ns > 0)
		top_add_most(screen, round->counts.longest_poll_ns);
	top_end_line(screen);
}

static void rates_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	tdt__string_printf(line, "%s polls/s, %s spawned/s, %s ended/s; in all ",
			   TOP_RATE(round->has_rates ? round->poll_rate : -1),
			   TOP_RATE(round->has_rates ? round->spawn_rate : -1),
			   TOP_RATE(round->has_rates ? round->end_rate : -1));
	if (round->counts.panicked > 0)
		tdt__color(line, TDT__RED);
	tdt__string_printf(line, "%s panicked", TDT__NUMBER(round->counts.panicked));
	tdt__color(line, TDT__PLAIN);
	tdt__string_printf(line, ", %s spawned, %s ended", TDT__NUMBER(round->counts.spawned),
			   TDT__NUMBER(round->counts.ended));
	if (round->counts.held > 0)
		tdt__string_printf(line, ", %s still held", TDT__NUMBER(round->counts.held));
	top_end_line(screen);
}

static const char *cpu_text(char text[TDT__WORDS_MAX], double cpu)
{
	snprintf(text, TDT__WORDS_MAX, cpu < 0 ? "-" : "%.0f %%", 100 * cpu);
	return text;
}

#define CPU_TEXT(cpu) cpu_text(TDT__WORDS_ROOM, cpu)

static void workers_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	tdt__string_printf(line, "%" PRIu64 " worker%s, %" PRIu64 " polling; CPU", round->workers,
			   round->workers == 1 ? "" : "s", round->workers_polling);
	for (uint64_t i = 0; i < round->n_threads && round->thread[i].worker; i++)
		tdt__string_printf(line, "%s %" PRIu32 " %s", i == 0 ? ":" : ",",
				   round->thread[i].id, CPU_TEXT(round->thread[i].cpu));
	top_end_line(screen);
}

/* Without trees the places are unknown: say what helps. */
static void trees_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	if (round->with_tree >= round->tasks / 2)
		return;
	tdt__string_printf(line, "%s of %s%s", TDT__NUMBER(round->tasks - round->with_tree),
			   TDT__COUNTED(round->tasks, "task"),
			   screen->choice->watch ? " have no tree; each has one after its next poll"
						 : " have no tree: w (--watch) has them watched");
	top_end_line(screen);
}

static void warning_lines(struct screen *screen)
{
	const struct top_round *round = screen->round;

	for (uint64_t i = 0; i < round->n_rings; i++)
		top_put_line(screen, i < round->deadlocks ? TDT__RED : TDT__YELLOW, round->ring[i]);
	if (round->misuse[0] != '\0')
		top_put_line(screen, TDT__RED, round->misuse);
	if (screen->choice->trouble[0] != '\0')
		top_put_line(screen, TDT__YELLOW, screen->choice->trouble);
	else if (round->refused != 0)
		top_put_line(screen, TDT__YELLOW,
			 "stacks of polls that compute cannot be read: perf_event_open(2) is "
			 "refused");
}

static void top_lines(struct screen *screen)
{
	title_line(screen);
	tasks_line(screen);
	if (screen->size->height >= LOW_SCREEN) {
		rates_line(screen);
		workers_line(screen);
	}
	trees_line(screen);
	warning_lines(screen);
	if (screen->size->height >= LOW_SCREEN)
		top_put_line(screen, NULL, "");
}

/* --- Lists -------------------------------------------------------------------------- */
static void place_titles(struct screen *screen)
{
	tdt__color(&screen->line, TDT__BOLD);
	top_add_cell(screen, "WAITING", 9, true);
	top_add_cell(screen, "CHANGE", 8, true);
	top_add_cell(screen, "LONGEST", 9, true);
	top_end_titles(screen, "PLACE");
}

static void place_row(struct screen *screen, size_t i, bool selected)
{
	const struct top_place *place = &screen->round->place[i];
	char change[TDT__WORDS_MAX + 1];

	(void)selected;
	snprintf(change, sizeof change, "%s%s",
		 place->more < 0   ? "-"
		 : place->more > 0 ? "+"
				   : "",
		 TDT__NUMBER((uint64_t)(place->more < 0 ? -place->more : place->more)));
	top_add_cell(screen, TDT__NUMBER(place->n), 9, true);
	top_add_cell(screen, change, 8, true);
	top_add_cell(screen, TDT__DURATION_CELL(place->longest), 9, true);
	tdt__string_puts(&screen->line, place->text);
}

/* Above the tasks. */
static void few_places(struct screen *screen)
{
	unsigned room = screen->size->height >= HIGH_SCREEN ? 8 : 3;

	if (screen->size->height < WITH_PLACES || screen->round->n_places == 0)
		return;
	place_titles(screen);
	top_rows(screen, screen->round->n_places, room, false, place_row);
	top_put_line(screen, NULL, "");
}

/* The width of names: narrow screens have less. */
static unsigned name_width(const struct screen *screen)
{
	unsigned width = screen->size->width;

	return width == 0 || width >= 100 ? 24 : width >= 60 ? 16 : 8;
}

static bool shows_rates(const struct screen *screen)
{
	return screen->size->width == 0 || screen->size->width >= 60;
}

static void task_titles(struct screen *screen)
{
	tdt__color(&screen->line, TDT__BOLD);
	top_add_cell(screen, "ID", 7, true);
	top_add_cell(screen, "NAME", name_width(screen), false);
	top_add_cell(screen, "STATE", 8, false);
	top_add_cell(screen, "FOR", 9, true);
	if (shows_rates(screen))
		top_add_cell(screen, "POLLS/S", 8, true);
	top_end_titles(screen, "WAITS FOR, OR PLACE");
}

static void state_cell(struct screen *screen, const struct top_task *task, bool colored)
{
	const struct tdt_task_info info = { .state = task->state, .state_ns = task->state_ns };
	const char *word = task->state == TDT_TASK_RUNNING    ? "polling"
			   : task->state == TDT_TASK_RUNNABLE ? "runnable"
							      : "waiting";
	const char *color = colored ? tdt__task_color(&info, task->deadlock) : NULL;

	if (color != NULL)
		tdt__color(&screen->line, color);
	top_add_cell(screen, word, 8, false);
	if (color != NULL)
		tdt__color(&screen->line, TDT__PLAIN);
}

static void task_row(struct screen *screen, size_t i, bool selected)
{
	const struct top_task *task = &screen->round->task[i];
	char id[24];

	snprintf(id, sizeof id, "%" PRIu64, task->id);
	top_add_cell(screen, id, 7, true);
	top_add_cell(screen, task->name[0] != '\0' ? task->name : "-", name_width(screen), false);
	state_cell(screen, task, !selected);
	top_add_cell(screen, TDT__DURATION_CELL(task->state_ns), 9, true);
	if (shows_rates(screen))
		top_add_cell(screen, TOP_RATE(task->rate), 8, true);
	tdt__string_puts(&screen->line, task->where);
}

static void list_line(struct screen *screen)
{
	static const char *const only[] = { "all", "waiting", "runnable", "polling" };
	static const char *const sorts[] = { "suspicion", "time", "age", "polls", "name", "id" };
	const struct top_question *question = &screen->choice->question;
	struct tdt__string *line = &screen->line;

	tdt__string_printf(line, "%s of them: %s, by %s%s", TDT__NUMBER(screen->round->n_matching),
			   only[question->only], sorts[question->sort],
			   question->reverse ? ", reversed" : "");
	if (question->filter[0] != '\0' || screen->choice->typing)
		tdt__string_printf(line, ", filter: %s%s", question->filter,
				   screen->choice->typing ? "_" : "");
	if (screen->round->n_matching > screen->round->n_tasks)
		tdt__string_printf(line, ", the first %" PRIu64, screen->round->n_tasks);
	top_end_line(screen);
}

static void view_tasks(struct screen *screen)
{
	few_places(screen);
	list_line(screen);
	task_titles(screen);
	top_rows(screen, screen->round->n_tasks, top_lines_left(screen), true, task_row);
}

static void view_places(struct screen *screen)
{
	struct tdt__string *line = &screen->line;

	tdt__string_printf(
	    line, "%s places; %s of %s have a tree", TDT__NUMBER(screen->round->places),
	    TDT__NUMBER(screen->round->with_tree), TDT__COUNTED(screen->round->tasks, "task"));
	top_end_line(screen);
	place_titles(screen);
	top_rows(screen, screen->round->n_places, top_lines_left(screen), true, place_row);
}

static void thread_row(struct screen *screen, size_t i, bool selected)
{
	const struct top_thread *thread = &screen->round->thread[i];
	char id[16];

	(void)selected;
	snprintf(id, sizeof id, "%" PRIu32, thread->id);
	top_add_cell(screen, id, 8, true);
	top_add_cell(screen, thread->name, 16, false);
	top_add_cell(screen, tdt__thread_word(thread->polls, thread->parked, thread->worker), 13,
		     false);
	top_add_cell(screen, TDT__DURATION_CELL(thread->ns), 9, true);
	top_add_cell(screen, CPU_TEXT(thread->cpu), 6, true);
	if (thread->polls)
		tdt__string_printf(&screen->line, "%" PRIu64 " %s", thread->task,
				   thread->task_name);
}

static void view_threads(struct screen *screen)
{
	tdt__color(&screen->line, TDT__BOLD);
	top_add_cell(screen, "THREAD", 8, true);
	top_add_cell(screen, "NAME", 16, false);
	top_add_cell(screen, "STATE", 13, false);
	top_add_cell(screen, "FOR", 9, true);
	top_add_cell(screen, "CPU", 6, true);
	top_end_titles(screen, "TASK");
	top_rows(screen, screen->round->n_threads, top_lines_left(screen), true, thread_row);
}

/* --- Times -------------------------------------------------------------------------- */

static void histogram_line(struct screen *screen, const char *what,
			   const struct top_histogram *histogram)
{
	struct tdt__string *line = &screen->line;

	tdt__string_printf(line, "%s%s", TDT__NUMBER(histogram->total), what);
	if (histogram->total > 0) {
		tdt__string_puts(line, ": 50 %");
		top_add_most(screen, top_histogram_share(histogram, 0.5));
		tdt__string_puts(line, ", 99 %");
		top_add_most(screen, top_histogram_share(histogram, 0.99));
		tdt__string_printf(line, ", longest %s", TDT__DURATION_CELL(histogram->most));
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
	tdt__string_printf(&screen->line, "%*s", (int)(width - own) + 1, "");
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
	top_add_cell(screen, TDT__NUMBER(n), 9, true);
	add_bar(screen, n, most);
}

static void bucket_row(struct screen *screen, unsigned i, unsigned step)
{
	const struct top_times *times = &screen->round->times;

	if (i + step >= TOP_BUCKETS)
		top_add_cell(screen, "longer", 11, true);
	else
		top_add_cell(screen, TDT__DURATION(top_bucket_ns(i + step - 1)), 11, true);
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

static void view_times(struct screen *screen)
{
	const struct top_times *times = &screen->round->times;

	if (!times->there) {
		top_put_line(screen, NULL,
			     times->trouble[0] != '\0' ? times->trouble
						       : "reading the recording...");
		top_put_line(screen, NULL, "tdt set PID record=16M has the process record.");
		return;
	}
	tdt__string_printf(&screen->line, "in the last %s%s", TDT__DURATION_CELL(times->window_ns),
			   times->runs ? " of the recording"
				       : " of the recording, which was stopped");
	top_end_line(screen);
	histogram_line(screen, " polls", &times->polls);
	histogram_line(screen, " from wake-up to poll", &times->latencies);
	top_put_line(screen, NULL, "");
	tdt__color(&screen->line, TDT__BOLD);
	top_add_cell(screen, "BELOW", 11, true);
	top_add_cell(screen, "POLLS", 9, true);
	top_add_cell(screen, "", screen->size->width >= 100 ? 28 : 14, false);
	top_end_titles(screen, "WAKE TO POLL");
	bucket_rows(screen);
}

/* --- The open task ------------------------------------------------------------------ */

static void view_tree(struct screen *screen)
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
			tdt__color(&screen->line, TDT__PLAIN);
			top_end_line(screen);
		}
		begin = i + 1;
	}
}

/* --- Help --------------------------------------------------------------------------- */

static void view_help(struct screen *screen)
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

/* --- Keys --------------------------------------------------------------------------- */

static void key_line(struct screen *screen)
{
	const char *keys = "1 tasks  2 places  3 threads  4 times  Enter tree  / filter  "
			   "? help  q quit";

	while (top_lines_left(screen) > 0)
		top_end_line(screen);
	if (screen->choice->help)
		keys = "any key: back";
	else if (screen->choice->typing)
		keys = "Enter: keep the filter  Esc: no filter";
	else if (screen->choice->question.open)
		keys = screen->round != NULL && screen->round->holder != 0
			       ? "Esc back  o the task that it waits for  arrows scroll  q quit"
			       : "Esc back  arrows scroll  q quit";
	top_put_line(screen, TDT__DIM, keys);
}

/* --- All of it ---------------------------------------------------------------------- */

static void draw_view(struct screen *screen)
{
	static void (*const views[])(struct screen *) = { view_tasks, view_places, view_threads,
							  view_times };

	if (screen->choice->help) {
		view_help(screen);
		return;
	}
	if (screen->round == NULL) {
		top_put_line(screen, NULL,
			     screen->choice->trouble[0] != '\0' ? screen->choice->trouble
								 : "reading...");
		return;
	}
	top_lines(screen);
	if (screen->choice->question.open)
		view_tree(screen);
	else
		views[screen->choice->question.view](screen);
}

void top_draw(struct tdt__string *to, const struct top_choice *choice,
	      const struct top_round *round, const struct top_size *size,
	      const struct tdt_print_options *print)
{
	struct screen screen = { .to = to,
				 .choice = choice,
				 .round = round,
				 .size = size,
				 .print = print,
				 .line.options = print };

	if (size->screen && (size->height < LEAST_HEIGHT || size->width < LEAST_WIDTH)) {
		top_put_line(&screen, NULL, "too small");
	} else {
		draw_view(&screen);
		if (size->screen)
			key_line(&screen);
	}
	tdt__string_free(&screen.line);
}
