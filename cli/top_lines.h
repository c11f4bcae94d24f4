/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The lines of a screen, made cell by cell.  A line is begun by the end of the line before; what is
 * added goes to its end.
 */

#include "cli/top_screen.h"

struct screen {
	struct tdt__string *to;
	const struct top_choice *choice;
	const struct top_round *round;
	const struct top_size *size;
	const struct tdt_print_options *print;
	unsigned lines; /* that were added */
	struct tdt__string line; /* the next one */
};

/* --- Lines ---------------------------------------------------------------------------- */

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

/* --- Cells ---------------------------------------------------------------------------- */

void top_add_blanks(struct tdt__string *to, unsigned n);

/* Add a cell of `width` columns, and a blank; the text is cut, or aligned as `right` says. */
void top_add_cell(struct screen *screen, const char *text, unsigned width, bool right);

/* Add the cell of the text that was made, aligned to the right, and free the text. */
void top_take_cell(struct screen *screen, struct tdt__string *text, unsigned width);

void top_time_cell(struct screen *screen, uint64_t ns, unsigned width);
void top_number_cell(struct screen *screen, uint64_t n, unsigned width);
void top_rate_cell(struct screen *screen, double rate, unsigned width);

/* Add that a time is at most `ns`: "≤" or "<=", and the time. */
void top_add_most(struct screen *screen, uint64_t ns);

/* A rate per second; "-" if it is negative: unknown. */
void top_add_rate(struct tdt__string *to, double rate);

/* The cells of the titles stand between these two. */
void top_begin_titles(struct screen *screen);
void top_end_titles(struct screen *screen, const char *last);

/* --- Rows ----------------------------------------------------------------------------- */

/* The first row that is shown of a list, so that the selected one is seen. */
size_t top_first_row(const struct screen *screen, unsigned room);

/* Begin the line of a row.  Returns whether it is the selected one, for top_end_row(). */
bool top_begin_row(struct screen *screen, size_t row);
void top_end_row(struct screen *screen, bool selected);
