// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Tables of text, with columns as wide as their cells. */

#include "cli/text_table.h"

#include <stdlib.h>

void text_table_cell(struct text_table *table)
{
	size_t begin = table->n > 0 ? table->end[table->n - 1] : 0;
	unsigned *width = &table->width[table->n % table->columns], own;

	if (table->text.n == begin)
		tdt__string_puts(&table->text, "-");
	if (table->text.failed || table->n == table->room)
		return;
	own = tdt__columns(table->text.bytes + begin, table->text.n - begin);
	if (own > *width)
		*width = own;
	table->end[table->n++] = table->text.n;
}

void text_table_begin(struct text_table *table, const struct text_column *column, unsigned columns,
		      size_t rows)
{
	*table = (struct text_table){ .column = column,
				      .columns = columns,
				      .room = (rows + 1) * columns };
	table->end = malloc(table->room * sizeof *table->end);
	table->text.failed = table->end == NULL;
	for (unsigned i = 0; i < columns; i++) {
		tdt__string_puts(&table->text, column[i].title);
		text_table_cell(table);
	}
}

#define LEAST_CUT_WIDTH 8 /* of a column that is cut */

static void fit_columns(struct text_table *table)
{
	unsigned all = 2 * (table->columns - 1), widest;

	for (unsigned i = 0; i < table->columns; i++)
		all += table->width[i];
	for (; table->most != 0 && all > table->most; all--) {
		widest = table->columns;
		for (unsigned i = 0; i < table->columns; i++)
			if (!table->column[i].right && table->width[i] > LEAST_CUT_WIDTH &&
			    (widest == table->columns || table->width[i] >= table->width[widest]))
				widest = i;
		if (widest == table->columns)
			return;
		table->width[widest]--;
	}
}

/* How many bytes of the text have so many characters. */
static size_t bytes_of(const char *text, size_t n, unsigned characters)
{
	size_t i = 0;

	while (i < n && (characters > 0 || ((unsigned char)text[i] & 0xc0) == 0x80))
		characters -= ((unsigned char)text[i++] & 0xc0) != 0x80;
	return i;
}

static void write_blanks(struct tdt__out *out, unsigned n)
{
	while (n-- > 0)
		tdt__out_add(out, " ", 1);
}

static void write_cells(struct tdt__out *out, const struct text_table *table)
{
	for (size_t i = 0; i < table->n && out->error == 0; i++) {
		size_t column = i % table->columns, begin = i > 0 ? table->end[i - 1] : 0;
		const char *text = table->text.bytes + begin;
		size_t n = table->end[i] - begin;
		unsigned own = tdt__columns(text, n), width = table->width[column];
		unsigned pad = own < width ? width - own : 0;
		bool right = table->column[column].right;

		if (right)
			write_blanks(out, pad);
		tdt__out_add(out, text, own > width ? bytes_of(text, n, width - 1) : n);
		if (own > width)
			tdt__out_add(out, ">", 1);
		if (column == table->columns - 1)
			tdt__out_add(out, "\n", 1);
		else
			write_blanks(out, (right ? 0 : pad) + 2);
	}
}

void text_table_end(struct text_table *table, struct tdt__out *out)
{
	fit_columns(table);
	out->no_memory |= table->text.failed;
	if (!table->text.failed && table->n > table->columns)
		write_cells(out, table);
	tdt__string_free(&table->text);
	free(table->end);
}
