// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The lines of a summary's text: how they are broken, and the words that several of them have. */

#include "summary_lines.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "terminal.h"
#include "words.h"

/* ---- Lines that are broken between their parts ---- */

/* How many columns UTF-8 takes, if each character takes one. */
static size_t columns_of(const struct tdt__string *string)
{
	size_t n = 0;

	for (size_t i = 0; i < string->n; i++)
		n += ((unsigned char)string->bytes[i] & 0xc0) != 0x80;
	return n;
}

void tdt__lines_begin(struct tdt__summary_lines *text)
{
	text->line.n = 0;
	text->part.n = 0;
	text->column = 0;
}

static void indent_line(struct tdt__summary_lines *text)
{
	while (text->line.n > 0 && text->line.bytes[text->line.n - 1] == ' ')
		text->line.n--;
	tdt__string_printf(&text->line, "\n%*s", TDT__LINES_INDENT, "");
	text->column = TDT__LINES_INDENT;
}

void tdt__lines_end_part(struct tdt__summary_lines *text)
{
	size_t n = columns_of(&text->part);

	if (n == 0)
		return;
	if (text->column > TDT__LINES_INDENT && text->column + 1 + n > TDT__LINES_COLUMNS) {
		indent_line(text);
	} else if (text->column > TDT__LINES_INDENT) {
		tdt__string_puts(&text->line, " ");
		text->column++;
	}
	tdt__string_add(&text->line, text->part.bytes, text->part.n);
	text->column += n;
	text->part.n = 0;
}

void tdt__lines_add_right(struct tdt__summary_lines *text, size_t columns, const char *color)
{
	size_t n = columns_of(&text->part);

	tdt__string_printf(&text->line, "%*s%s", n < columns ? (int)(columns - n) : 0, "",
			   tdt__color_of(color, text->options));
	tdt__string_add(&text->line, text->part.bytes, text->part.n);
	tdt__color(&text->line, TDT__PLAIN, text->options);
	text->part.n = 0;
}

void tdt__lines_end(struct tdt__summary_lines *text)
{
	if (text->line.failed || text->part.failed) {
		text->error = -ENOMEM;
		tdt__string_free(&text->line);
		tdt__string_free(&text->part);
		return;
	}
	tdt__out_add(text->out, text->line.bytes, text->line.n);
	tdt__out_add(text->out, "\n", 1);
}

/* ---- Words ---- */

void tdt__lines_task(struct tdt__summary_lines *text, struct tdt__string *string, uint32_t index)
{
	const struct tdt__recorded_task *task = &text->tasks[index];

	tdt__task_name(string, task->id, tdt__name_or_null(task->name), text->options);
}

/* ---- Around the entries of a list ---- */

void tdt__lines_heading(struct tdt__summary_lines *text, const char *words)
{
	tdt__lines_begin(text);
	tdt__string_printf(&text->line, "\n%s%s%s", tdt__color_of(TDT__BOLD, text->options), words,
			   tdt__color_of(TDT__PLAIN, text->options));
	tdt__lines_end(text);
}

void tdt__lines_say_more(struct tdt__summary_lines *text, size_t shown, size_t found)
{
	if (found <= shown)
		return;
	tdt__lines_begin(text);
	tdt__string_printf(&text->line, "   and %s more", TDT__NUMBER(found - shown));
	tdt__lines_end(text);
}
