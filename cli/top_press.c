// SPDX-License-Identifier: Apache-2.0 OR MIT
/* What keys do in tdt top: see top_screen.h. */

#include <string.h>

#include <curses.h>

#include "base/clock.h"
#include "cli/top_screen.h"

#define ESCAPE 27
#define PAGE_ROWS 10
#define FASTEST (TDT__SECOND / 10)
#define SLOWEST (60 * TDT__SECOND)

static size_t lines_of_tree(const struct top_round *round)
{
	size_t n = 0;

	for (uint64_t i = 0; i < round->tree_size; i++)
		n += round->tree[i] == '\n';
	return n;
}

/* The rows of the list that is shown, or the lines of the tree. */
static size_t rows_shown(const struct top_choice *choice, const struct top_round *round)
{
	if (round == NULL)
		return 0;
	if (choice->question.open)
		return lines_of_tree(round);
	return (const uint64_t[TOP_VIEWS]){ round->n_tasks, round->n_places, round->n_threads,
					    0 }[choice->question.view];
}

static bool lists_tasks(const struct top_choice *choice)
{
	return choice->question.view == TOP_VIEW_TASKS && !choice->question.open;
}

static void move_to(struct top_choice *choice, const struct top_round *round, int64_t row)
{
	int64_t n = (int64_t)rows_shown(choice, round);

	if (row >= n)
		row = n - 1;
	if (row < 0)
		row = 0;
	choice->at = (size_t)row;
	if (lists_tasks(choice))
		choice->selected = row > 0 && row < n ? round->task[row].id : 0;
}

void top_follow(struct top_choice *choice, const struct top_round *round)
{
	size_t n = rows_shown(choice, round);

	for (uint64_t i = 0; lists_tasks(choice) && choice->selected != 0 && i < n; i++)
		if (round->task[i].id == choice->selected)
			choice->at = i;
	if (choice->at >= n)
		choice->at = n > 0 ? n - 1 : 0;
}

static void ask_anew(struct top_choice *choice)
{
	choice->anew = true;
	choice->paused = false;
}

/* Begin at the first row of another list. */
static void begin_list(struct top_choice *choice)
{
	choice->at = 0;
	choice->selected = 0;
	ask_anew(choice);
}

static void show_view(struct top_choice *choice, enum top_view view)
{
	choice->question.view = view;
	choice->question.open = false;
	choice->n_before = 0;
	begin_list(choice);
}

static void open_task(struct top_choice *choice, uint64_t id)
{
	choice->question.open = true;
	choice->question.id = id;
	choice->at = 0;
	ask_anew(choice);
}

static void open_selected(struct top_choice *choice, const struct top_round *round)
{
	if (round == NULL || choice->question.open)
		return;
	if (lists_tasks(choice) && choice->at < round->n_tasks) {
		open_task(choice, round->task[choice->at].id);
		choice->selected = choice->question.id;
	}
	if (choice->question.view == TOP_VIEW_THREADS && choice->at < round->n_threads &&
	    round->thread[choice->at].task != 0)
		open_task(choice, round->thread[choice->at].task);
}

static void open_holder(struct top_choice *choice, const struct top_round *round)
{
	if (round == NULL || !choice->question.open || round->holder == 0)
		return;
	if (choice->n_before == TOP_OPENED)
		memmove(choice->before, choice->before + 1,
			--choice->n_before * sizeof choice->before[0]);
	choice->before[choice->n_before++] = choice->question.id;
	open_task(choice, round->holder);
}

static void go_back(struct top_choice *choice)
{
	if (choice->help) {
		choice->help = false;
	} else if (choice->question.open && choice->n_before > 0) {
		open_task(choice, choice->before[--choice->n_before]);
	} else if (choice->question.open) {
		choice->question.open = false;
		choice->at = 0;
		ask_anew(choice);
	} else if (choice->question.filter[0] != '\0') {
		choice->question.filter[0] = '\0';
		ask_anew(choice);
	}
}

static void change_interval(struct top_choice *choice, bool faster)
{
	uint64_t interval = faster ? choice->interval / 2 : choice->interval * 2;

	if (interval >= FASTEST && interval <= SLOWEST)
		choice->interval = interval;
}

static void type_filter(struct top_choice *choice, int key)
{
	char *filter = choice->question.filter;
	size_t n = strlen(filter);

	if (key == '\r' || key == '\n' || key == KEY_ENTER) {
		choice->typing = false;
	} else if (key == ESCAPE || key == KEY_LEFT) {
		choice->typing = false;
		filter[0] = '\0';
	} else if (key == KEY_BACKSPACE || key == 0x7f || key == '\b') {
		filter[n - (n > 0)] = '\0';
	} else if (key >= ' ' && key < 0x7f && n < sizeof choice->question.filter - 1) {
		filter[n] = (char)key;
		filter[n + 1] = '\0';
	}
	begin_list(choice);
}

/* Returns whether the key moves. */
static bool press_move(struct top_choice *choice, int key, const struct top_round *round)
{
	int64_t at = (int64_t)choice->at;

	switch (key) {
	case KEY_UP:
	case 'k':
		at--;
		break;
	case KEY_DOWN:
	case 'j':
		at++;
		break;
	case KEY_PPAGE:
		at -= PAGE_ROWS;
		break;
	case KEY_NPAGE:
		at += PAGE_ROWS;
		break;
	case KEY_HOME:
		at = 0;
		break;
	case KEY_END:
		at = INT64_MAX;
		break;
	default:
		return false;
	}
	move_to(choice, round, at);
	return true;
}

/* Returns whether the key changes which tasks are listed, or in which order. */
static bool press_list(struct top_choice *choice, int key)
{
	struct top_question *question = &choice->question;

	switch (key) {
	case '>':
		question->sort = (question->sort + 1) % TOP_SORTS;
		break;
	case '<':
		question->sort = (question->sort + TOP_SORTS - 1) % TOP_SORTS;
		break;
	case 'r':
		question->reverse = !question->reverse;
		break;
	case 's':
		question->only = (question->only + 1) % TOP_ONLYS;
		break;
	case '/':
		show_view(choice, TOP_VIEW_TASKS);
		choice->typing = true;
		return true;
	default:
		return false;
	}
	begin_list(choice);
	return true;
}

static void press_other(struct top_choice *choice, int key, const struct top_round *round)
{
	switch (key) {
	case 'q':
		choice->quit = true;
		break;
	case '?':
	case 'h':
		choice->help = !choice->help;
		break;
	case '\t':
		show_view(choice, (choice->question.view + 1) % TOP_VIEWS);
		break;
	case '\r':
	case '\n':
	case KEY_ENTER:
		open_selected(choice, round);
		break;
	case ESCAPE:
	case KEY_LEFT:
		go_back(choice);
		break;
	case 'o':
		open_holder(choice, round);
		break;
	case 'w':
		choice->watch = !choice->watch;
		break;
	case ' ':
		choice->paused = !choice->paused;
		break;
	case '+':
	case '-':
		change_interval(choice, key == '+');
		break;
	default:
		break;
	}
}

void top_press(struct top_choice *choice, int key, const struct top_round *round)
{
	if (choice->typing)
		type_filter(choice, key);
	else if (choice->help && key != 'q')
		choice->help = false;
	else if (key >= '1' && key < '1' + TOP_VIEWS)
		show_view(choice, (enum top_view)(key - '1'));
	else if (!press_move(choice, key, round) && !press_list(choice, key))
		press_other(choice, key, round);
}
