/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Tables of text.  The cells are made first, so that each column is as wide as its widest cell:
 *
 *	text_table_begin(&table, columns, 9, rows);
 *	tdt__string_puts(&table.text, "a cell");
 *	text_table_cell(&table);                     // and so on, row by row
 *	text_table_end(&table, out);
 */

#include <stdbool.h>
#include <stddef.h>

#include "tree-printer/strings.h"

#define TEXT_TABLE_COLUMNS 10 /* at most */

struct text_column {
	const char *title;
	bool right; /* aligned to the right */
};

struct text_table {
	struct tdt__string text; /* of all cells, one behind the other */

	/*
	 * The most columns of a row; 0: any number.  The widest texts that are aligned to the left
	 * are cut then, and end with ">".
	 */
	unsigned most;

	/* Private to text_table.c. */
	const struct text_column *column;
	unsigned columns;
	size_t *end; /* of each cell */
	size_t n, room;
	unsigned width[TEXT_TABLE_COLUMNS];
};

/* Begin a table with so many rows at most, and make the cells of the titles. */
void text_table_begin(struct text_table *table, const struct text_column *column, unsigned columns,
		      size_t rows);

/*
 * The text that was added since the last cell is a cell; "-" if there is none.  A cell behind the
 * last row is left out.
 */
void text_table_cell(struct text_table *table);

/* Write the table, unless it has only titles, and free it. */
void text_table_end(struct text_table *table, struct tdt__out *out);
