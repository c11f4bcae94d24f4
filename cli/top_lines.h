/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The lines of a screen, made cell by cell.  A line is begun by the end of the line before; what is
 * added goes to its end.
 */

#include "cli/top_screen.h"
#include "tree-printer/words.h"

struct screen {
	struct tdt__string *to;
	const struct top_choice *choice;
	const struct top_round *round;
	const struct top_size *size;
	const struct tdt_print_options *print;
	unsigned lines; /* that were added */
	struct tdt__string line; /* the next one */
};

/*
 * Add the first `width` columns of the `n` bytes of a line (0: all of it), and "…" or ">" if
 * something was cut.
 */
void top_cut(struct tdt__string *to, const char *line, size_t n, unsigned width, bool utf8);

/* If `text` begins with a colour or TOP_REVERSE, returns its length; otherwise 0. */
size_t top_sequence(const char *text, size_t n);

/* End the line that was made, unless the screen is full, and begin another one. */
void top_end_line(struct screen *screen);

/* A whole line, in a colour if that is not NULL. */
void top_put_line(struct screen *screen, const char *color, const char *text);

/* Lines that are left for the body; the last line is about keys. */
unsigned top_lines_left(const struct screen *screen);

/* Add a cell of `width` columns, and a blank; the text is cut, or aligned as `right` says. */
void top_add_cell(struct screen *screen, const char *text, unsigned width, bool right);

/* Add that a time is at most `ns`: "≤" or "<=", and the time. */
void top_add_most(struct screen *screen, uint64_t ns);

/* A rate per second; "-" if it is negative: unknown. */
#define TOP_RATE(rate) top_rate_text(TDT__WORDS_ROOM, rate)
const char *top_rate_text(char text[TDT__WORDS_MAX], double rate);

/* End the line of the titles, which begins with TDT__BOLD. */
void top_end_titles(struct screen *screen, const char *last);

/* Make the line of row `i` of a list. */
typedef void top_row_fn(struct screen *screen, size_t i, bool selected);

/*
 * Show the rows of a list of `n`, as many as there is room for.  `select`: the selected one is
 * marked, and among them.
 */
void top_rows(struct screen *screen, size_t n, unsigned room, bool select, top_row_fn *row);
