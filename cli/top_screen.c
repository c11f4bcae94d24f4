// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The lines of tdt top: see top_screen.h.
 *
 *	process 4711, libtdt 0.1.0; a round each 1.000 s
 *	3 tasks: 2 waiting <= 4.003 s, 0 runnable, 1 polling <= 10.00 ms
 *	12 polls/s, 3.0 spawned/s, 3.0 ended/s; in all 0 panicked, 5 spawned, 2 ended
 *	2 workers, 1 polling; CPU: 4712 99 %, 4713 3 %
 *
 *	WAITING  CHANGE   LONGEST  PLACE
 *	      2      +1   4.003 s  tdt_tcp_read in conn_poll at demo/echo.c:196:3
 *
 *	      ID NAME              STATE           FOR   POLLS/S WAITS FOR, OR PLACE
 *	       1 conn 1            waiting     4.003 s       0.0 tdt_tcp_read in conn_poll...
 *	1 tasks  2 places  3 threads  4 times  Enter tree  / filter  ? help  q quit
 *
 * A low screen has fewer lines at the top, and no places above the tasks.
 */

#include "cli/top_screen.h"

#include <inttypes.h>
#include <string.h>

#include "cli/top_lines.h"
#include "cli/top_views.h"
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

	tdt__string_printf(line, "process %" PRIu32 ", libtdt ", round->pid);
	tdt__string_puts(line, round->library);
	if (round->copies > 1)
		tdt__string_printf(line, " (1 of %" PRIu32 " copies)", round->copies);
	if (screen->choice->ended || round->state == 'T' || round->state == 't') {
		tdt__color(line, TDT__RED, screen->print);
		tdt__string_puts(line, screen->choice->ended ? ": it has ended" : ": stopped");
		tdt__color(line, TDT__PLAIN, screen->print);
	}
	tdt__string_puts(line, screen->choice->paused ? "; paused" : "; a round each ");
	if (!screen->choice->paused)
		tdt__duration_cell(line, screen->choice->interval);
	top_end_line(screen);
}

static void tasks_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	tdt__count_tasks(line, round->tasks);
	tdt__string_puts(line, ": ");
	tdt__count(line, round->waiting);
	tdt__string_puts(line, " waiting");
	if (round->longest_wait > 0)
		top_add_most(screen, round->longest_wait);
	tdt__string_puts(line, ", ");
	tdt__count(line, round->runnable);
	tdt__string_puts(line, " runnable, ");
	tdt__count(line, round->polling);
	tdt__string_puts(line, " polling");
	if (round->longest_poll > 0)
		top_add_most(screen, round->longest_poll);
	top_end_line(screen);
}

static void rates_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	top_add_rate(line, round->has_rates ? round->poll_rate : -1);
	tdt__string_puts(line, " polls/s, ");
	top_add_rate(line, round->has_rates ? round->spawn_rate : -1);
	tdt__string_puts(line, " spawned/s, ");
	top_add_rate(line, round->has_rates ? round->end_rate : -1);
	tdt__string_puts(line, " ended/s; in all ");
	if (round->panicked > 0)
		tdt__color(line, TDT__RED, screen->print);
	tdt__count(line, round->panicked);
	tdt__string_puts(line, " panicked");
	tdt__color(line, TDT__PLAIN, screen->print);
	tdt__string_puts(line, ", ");
	tdt__count(line, round->spawned);
	tdt__string_puts(line, " spawned, ");
	tdt__count(line, round->ended);
	tdt__string_puts(line, " ended");
	if (round->held > 0) {
		tdt__string_puts(line, ", ");
		tdt__count(line, round->held);
		tdt__string_puts(line, " still held");
	}
	top_end_line(screen);
}

static void workers_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	tdt__string_printf(line, "%" PRIu64 " worker%s, %" PRIu64 " polling; CPU", round->workers,
			   round->workers == 1 ? "" : "s", round->workers_polling);
	for (uint64_t i = 0; i < round->n_threads && round->thread[i].worker; i++) {
		tdt__string_printf(line, "%s %" PRIu32 " ", i == 0 ? ":" : ",",
				   round->thread[i].id);
		if (round->thread[i].cpu < 0)
			tdt__string_puts(line, "-");
		else
			tdt__string_printf(line, "%.0f %%", 100 * round->thread[i].cpu);
	}
	top_end_line(screen);
}

/* Without trees the places are unknown: say what helps. */
static void trees_line(struct screen *screen)
{
	const struct top_round *round = screen->round;
	struct tdt__string *line = &screen->line;

	if (round->with_tree >= round->tasks / 2)
		return;
	tdt__count(line, round->tasks - round->with_tree);
	tdt__string_puts(line, " of ");
	tdt__count_tasks(line, round->tasks);
	tdt__string_puts(line, screen->choice->watch
				       ? " have no tree; each has one after its next poll"
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
	top_begin_titles(screen);
	top_add_cell(screen, "WAITING", 9, true);
	top_add_cell(screen, "CHANGE", 8, true);
	top_add_cell(screen, "LONGEST", 9, true);
	top_end_titles(screen, "PLACE");
}

static void place_row(struct screen *screen, const struct top_place *place)
{
	struct tdt__string change = { 0 };
	uint64_t size = (uint64_t)(place->more < 0 ? -place->more : place->more);

	top_number_cell(screen, place->n, 9);
	if (place->more != 0)
		tdt__string_puts(&change, place->more < 0 ? "-" : "+");
	tdt__count(&change, size);
	top_take_cell(screen, &change, 8);
	top_time_cell(screen, place->longest, 9);
	tdt__string_puts(&screen->line, place->text);
}

static void place_rows(struct screen *screen, unsigned room, bool select)
{
	const struct top_round *round = screen->round;
	size_t first = select ? top_first_row(screen, room) : 0;

	for (size_t i = first; i < round->n_places && i < first + room; i++) {
		bool selected = select && top_begin_row(screen, i);

		place_row(screen, &round->place[i]);
		top_end_row(screen, selected);
	}
}

/* Above the tasks. */
static void few_places(struct screen *screen)
{
	unsigned room = screen->size->height >= HIGH_SCREEN ? 8 : 3;

	if (screen->size->height < WITH_PLACES || screen->round->n_places == 0)
		return;
	place_titles(screen);
	place_rows(screen, room, false);
	top_put_line(screen, NULL, "");
}

static const char *word_of_state(enum tdt_task_state state)
{
	switch (state) {
	case TDT_TASK_RUNNING:
		return "polling";
	case TDT_TASK_RUNNABLE:
		return "runnable";
	default:
		return "waiting";
	}
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
	top_begin_titles(screen);
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
	const char *color = colored ? tdt__task_color(&info, task->deadlock) : NULL;

	if (color != NULL)
		tdt__color(&screen->line, color, screen->print);
	top_add_cell(screen, word_of_state(task->state), 8, false);
	if (color != NULL)
		tdt__color(&screen->line, TDT__PLAIN, screen->print);
}

static void task_row(struct screen *screen, const struct top_task *task, bool selected)
{
	struct tdt__string id = { 0 };

	tdt__string_printf(&id, "%" PRIu64, task->id);
	top_take_cell(screen, &id, 7);
	top_add_cell(screen, task->name[0] != '\0' ? task->name : "-", name_width(screen), false);
	state_cell(screen, task, !selected);
	top_time_cell(screen, task->state_ns, 9);
	if (shows_rates(screen))
		top_rate_cell(screen, task->rate, 8);
	tdt__string_puts(&screen->line, task->where);
}

/* Which tasks are listed, and in which order. */
static void list_line(struct screen *screen)
{
	static const char *const only[] = { "all", "waiting", "runnable", "polling" };
	static const char *const sorts[] = { "suspicion", "time", "age", "polls", "name", "id" };
	const struct top_question *question = &screen->choice->question;
	struct tdt__string *line = &screen->line;

	tdt__count(line, screen->round->n_matching);
	tdt__string_printf(line, " of them: %s, by %s%s", only[question->only],
			   sorts[question->sort], question->reverse ? ", reversed" : "");
	if (question->filter[0] != '\0' || screen->choice->typing) {
		tdt__string_puts(line, ", filter: ");
		tdt__string_puts(line, question->filter);
		tdt__string_puts(line, screen->choice->typing ? "_" : "");
	}
	if (screen->round->n_matching > screen->round->n_tasks)
		tdt__string_printf(line, ", the first %" PRIu64, screen->round->n_tasks);
	top_end_line(screen);
}

static void view_tasks(struct screen *screen)
{
	const struct top_round *round = screen->round;
	unsigned room;
	size_t first;

	few_places(screen);
	list_line(screen);
	task_titles(screen);
	room = top_lines_left(screen);
	first = top_first_row(screen, room);
	for (size_t i = first; i < round->n_tasks && i < first + room; i++) {
		bool selected = top_begin_row(screen, i);

		task_row(screen, &round->task[i], selected);
		top_end_row(screen, selected);
	}
}

static void view_places(struct screen *screen)
{
	struct tdt__string *line = &screen->line;

	tdt__count(line, screen->round->places);
	tdt__string_puts(line, " places; ");
	tdt__count(line, screen->round->with_tree);
	tdt__string_puts(line, " of ");
	tdt__count_tasks(line, screen->round->tasks);
	tdt__string_puts(line, " have a tree");
	top_end_line(screen);
	place_titles(screen);
	place_rows(screen, top_lines_left(screen), true);
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
	static void (*const views[])(struct screen *) = { view_tasks, view_places,
							  top_view_threads, top_view_times };

	if (screen->choice->help) {
		top_view_help(screen);
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
		top_view_tree(screen);
	else
		views[screen->choice->question.view](screen);
}

void top_draw(struct tdt__string *to, const struct top_choice *choice,
	      const struct top_round *round, const struct top_size *size,
	      const struct tdt_print_options *print)
{
	struct screen screen = {
		.to = to, .choice = choice, .round = round, .size = size, .print = print
	};

	if (size->screen && (size->height < LEAST_HEIGHT || size->width < LEAST_WIDTH)) {
		top_put_line(&screen, NULL, "too small");
	} else {
		draw_view(&screen);
		if (size->screen)
			key_line(&screen);
	}
	tdt__string_free(&screen.line);
}
