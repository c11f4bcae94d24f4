// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Making the lines of tdt top: see top_lines.h. */

#include "cli/top_lines.h"

#include <string.h>
#include <wchar.h>

#include "tree-printer/terminal.h"
#include "tree-printer/words.h"

size_t top_sequence(const char *text, size_t n)
{
	static const char *const known[] = { TDT__BOLD,	  TDT__DIM,  TDT__RED,	 TDT__GREEN,
					     TDT__YELLOW, TDT__PLAIN, TOP_REVERSE };

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (n >= strlen(known[i]) && memcmp(text, known[i], strlen(known[i])) == 0)
			return strlen(known[i]);
	return 0;
}

struct character {
	size_t n; /* bytes */
	unsigned width;
	bool shown; /* as it is; otherwise as "?" */
};

/* What harms a terminal is not shown, nor what is no character to a terminal of its kind. */
static struct character character_at(const char *text, size_t n, bool utf8)
{
	char one[5] = { 0 };
	uint32_t code = 0;
	size_t length;
	int columns;

	memcpy(one, text, n < 4 ? n : 4);
	length = tdt__utf8_decode(one, &code);
	if (length == 0 || tdt__is_harmful(code) || (code >= 0x80 && !utf8))
		return (struct character){ length != 0 ? length : 1, 1, false };
	columns = code < 0x80 ? 1 : wcwidth((wchar_t)code);
	return (struct character){ length, columns < 0 ? 1 : (unsigned)columns, true };
}

static unsigned width_of(const char *text, size_t n, bool utf8)
{
	struct character next;
	unsigned width = 0;

	for (size_t at = 0, step; at < n; at += step) {
		step = top_sequence(text + at, n - at);
		if (step != 0)
			continue;
		next = character_at(text + at, n - at, utf8);
		step = next.n;
		width += next.width;
	}
	return width;
}

void top_cut(struct tdt__string *to, const char *line, size_t n, unsigned width, bool utf8)
{
	bool cut = width != 0 && width_of(line, n, utf8) > width;
	unsigned left = cut ? width - 1 : UINT32_MAX;
	struct character next;
	bool full = false;

	for (size_t at = 0, step; at < n; at += step) {
		step = top_sequence(line + at, n - at);
		if (step != 0) {
			tdt__string_add(to, line + at, step);
			continue;
		}
		next = character_at(line + at, n - at, utf8);
		step = next.n;
		if (!full && next.width > left)
			tdt__string_puts(to, utf8 ? "…" : ">");
		full = full || next.width > left;
		if (full)
			continue;
		tdt__string_add(to, next.shown ? line + at : "?", next.shown ? next.n : 1);
		left -= next.width;
	}
}

void top_end_line(struct screen *screen)
{
	struct tdt__string *line = &screen->line;

	if (line->failed)
		screen->to->failed = true;
	if (screen->lines < screen->size->height) {
		top_cut(screen->to, line->bytes, line->n, screen->size->width,
			screen->print->utf8 == TDT_PRINT_YES);
		tdt__string_puts(screen->to, "\n");
		screen->lines++;
	}
	line->n = 0;
}

void top_put_line(struct screen *screen, const char *color, const char *text)
{
	tdt__colored(&screen->line, color, text);
	top_end_line(screen);
}

unsigned top_lines_left(const struct screen *screen)
{
	unsigned used = screen->lines + (screen->size->screen ? 1 : 0);

	return used < screen->size->height ? screen->size->height - used : 0;
}

void top_add_cell(struct screen *screen, const char *text, unsigned width, bool right)
{
	bool utf8 = screen->print->utf8 == TDT_PRINT_YES;
	unsigned own = width_of(text, strlen(text), utf8), pad = own < width ? width - own : 0;

	tdt__string_printf(&screen->line, "%*s", right ? (int)pad : 0, "");
	top_cut(&screen->line, text, strlen(text), width, utf8);
	tdt__string_printf(&screen->line, "%*s", right ? 1 : (int)pad + 1, "");
}

void top_add_most(struct screen *screen, uint64_t ns)
{
	tdt__string_printf(
	    &screen->line, "%s%s",
	    screen->print->utf8 == TDT_PRINT_YES ? " ≤ " : " <= ", TDT__DURATION_CELL(ns));
}

const char *top_rate_text(char text[TDT__WORDS_MAX], double rate)
{
	if (rate < 0)
		return "-";
	if (rate >= 10)
		return tdt__count_text(text, rate < 1e18 ? (uint64_t)rate : (uint64_t)1e18, "");
	snprintf(text, TDT__WORDS_MAX, "%.1f", rate);
	return text;
}

void top_end_titles(struct screen *screen, const char *last)
{
	tdt__string_puts(&screen->line, last);
	tdt__color(&screen->line, TDT__PLAIN);
	top_end_line(screen);
}

/* The selected line is marked to its end. */
static void mark_line(struct screen *screen)
{
	unsigned width = screen->size->width;
	unsigned own =
	    width_of(screen->line.bytes, screen->line.n, screen->print->utf8 == TDT_PRINT_YES);

	tdt__string_printf(&screen->line, "%*s", own < width ? (int)(width - own) : 0, "");
	tdt__string_puts(&screen->line, TDT__PLAIN);
}

void top_rows(struct screen *screen, size_t n, unsigned room, bool select, top_row_fn *row)
{
	size_t at = screen->choice->at,
	       first = select && room > 0 && at >= room ? at - room + 1 : 0;

	for (size_t i = first; i < n && i < first + room; i++) {
		bool selected = select && screen->size->screen && i == at;

		if (selected)
			tdt__string_puts(&screen->line, TOP_REVERSE);
		row(screen, i, selected);
		if (selected)
			mark_line(screen);
		top_end_line(screen);
	}
}
