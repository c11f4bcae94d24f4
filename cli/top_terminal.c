// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The terminal of tdt top, by curses: see top_screen.h. */

#include "cli/top_screen.h"

#include <string.h>
#include <unistd.h>

#define NCURSES_NOMACROS 1
#include <curses.h>

#include "cli/top_lines.h"
#include "tree-printer/terminal.h"

#define ESCAPE_MS 25 /* a key's sequence follows its Escape within this time */

static SCREEN *terminal;
static bool colors;

/* The colours of a dump, as pairs with the terminal's own background. */
static const struct {
	const char *sequence;
	short color; /* -1: an attribute */
	attr_t attribute;
} looks[] = {
	{ TDT__RED, COLOR_RED, 0 },	  { TDT__GREEN, COLOR_GREEN, 0 },
	{ TDT__YELLOW, COLOR_YELLOW, 0 }, { TDT__BOLD, -1, A_BOLD },
	{ TDT__DIM, -1, A_DIM },	  { TOP_REVERSE, -1, A_REVERSE },
};
#define COLOR_LOOKS (sizeof looks / sizeof looks[0])

static void begin_colors(bool wanted)
{
	colors = wanted && has_colors() && start_color() == OK;
	if (!colors)
		return;
	use_default_colors();
	for (size_t i = 0; i < COLOR_LOOKS; i++)
		if (looks[i].color >= 0)
			init_pair((short)(i + 1), looks[i].color, -1);
}

bool top_terminal_begin(bool color)
{
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return false;
	terminal = newterm(NULL, stdout, stdin);
	if (terminal == NULL)
		return false;
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(ESCAPE_MS);
	curs_set(0);
	begin_colors(color);
	return true;
}

void top_terminal_end(void)
{
	if (terminal == NULL)
		return;
	endwin();
	delscreen(terminal);
	terminal = NULL;
}

void top_terminal_size(struct top_size *size)
{
	size->height = (unsigned)getmaxy(stdscr);
	size->width = (unsigned)getmaxx(stdscr);
	size->screen = true;
}

static void set_look(const char *sequence, size_t n)
{
	size_t i = 0;

	while (i < COLOR_LOOKS && memcmp(looks[i].sequence, sequence, n) != 0)
		i++;
	if (i == COLOR_LOOKS)
		attrset(A_NORMAL); /* TDT__PLAIN */
	else if (looks[i].color < 0)
		attron((int)looks[i].attribute);
	else if (colors)
		attron(COLOR_PAIR((int)i + 1));
}

static size_t plain_text(const char *text, size_t n)
{
	size_t length = 0;

	while (length < n && top_sequence(text + length, n - length) == 0)
		length++;
	return length;
}

static void show_line(const char *line, size_t n)
{
	for (size_t at = 0, step; at < n; at += step) {
		step = top_sequence(line + at, n - at);
		if (step != 0) {
			set_look(line + at, step);
		} else {
			step = plain_text(line + at, n - at);
			addnstr(line + at, (int)step);
		}
	}
	attrset(A_NORMAL);
}

void top_terminal_show(const char *text, size_t n)
{
	int row = 0;

	erase();
	for (const char *end; n > 0 && (end = memchr(text, '\n', n)) != NULL; row++) {
		size_t length = (size_t)(end - text);

		move(row, 0);
		show_line(text, length);
		text += length + 1;
		n -= length + 1;
	}
	refresh();
}

int top_terminal_key(void)
{
	return getch();
}
