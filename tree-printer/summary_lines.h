/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The text of a summary while it is written: the lines of one entry after the other. */

#include <stddef.h>
#include <stdint.h>

#include "strings.h"
#include "summaries.h"

#include "recording/read.h"

enum {
	TDT__LINES_COLUMNS = 80,
	TDT__LINES_INDENT = 13 /* of the lines below the first one of an entry */
};

struct tdt__summary_lines {
	struct tdt__out *out;
	const struct tdt__summary_form *form;
	const struct tdt__summary *summary;
	const struct tdt_print_options *options;
	const struct tdt__recorded_task *tasks;
	const struct tdt__recorded_thread *threads;
	struct tdt__string line; /* the lines of one entry */
	struct tdt__string part; /* the next part of them */
	size_t column;           /* where the last of these lines ends */
	int error;
};

/* Begin the lines of an entry. */
void tdt__lines_begin(struct tdt__summary_lines *text);

/* Add the part that was made, behind a space or on a line of its own. */
void tdt__lines_end_part(struct tdt__summary_lines *text);

/* Add the part that was made so that it ends at the right of `columns` columns. */
void tdt__lines_add_right(struct tdt__summary_lines *text, size_t columns, const char *color);

/* Write the lines.  Without memory for them they are left out. */
void tdt__lines_end(struct tdt__summary_lines *text);

/* Write a section's heading, with an empty line before it. */
void tdt__lines_heading(struct tdt__summary_lines *text, const char *words);

/*
 * Write a section: a heading, unless the list is empty, and `entry(text, &...)` for each entry.
 */
#define TDT__LINES_SECTION(text, words, list, entry_lines)				\
	do {									\
		if ((list).n != 0)						\
			tdt__lines_heading(text, words);			\
		for (size_t i = 0; i < (list).n; i++)				\
			entry_lines(text, &(list).entry[i]);			\
	} while (0)

/* Say how many entries are not shown. */
void tdt__lines_say_more(struct tdt__summary_lines *text, size_t shown, size_t found);

/* Add a task's id and name to the part or to the lines. */
void tdt__lines_task(struct tdt__summary_lines *text, struct tdt__string *string, uint32_t index);

/* The functions of words.h want NULL for a name that is not known. */
static inline const char *tdt__name_or_null(const char *name)
{
	return name[0] != '\0' ? name : NULL;
}

/* The sections that list entries (summary_entries.c), and the tables (summary_tables.c). */
void tdt__summary_entries(struct tdt__summary_lines *text);
void tdt__summary_tables(struct tdt__summary_lines *text);
