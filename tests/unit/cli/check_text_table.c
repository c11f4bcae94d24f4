// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Covers cli/text_table.  Whole tables, also where the terminal is narrower than they are. */

#include "cli/text_table.h"
#include "lib/test.h"

static const struct text_column columns[] = {
	{ "ID", true }, { "NAME", false }, { "PLACE", false }
};

/* Print a table with two rows in `most` columns, and claim its text.  A third row has no room. */
static void prints_within(unsigned most, const char *expected)
{
	static const char *const cells[] = { "1", "", "demo/a.c:153", "10", "connection 7",
					     "x \xc3\xa4\xc3\xb6\xc3\xbc.c:1", "11", "much",
					     "more" };
	struct text_table table;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	struct tdt__out out = { .file = file };

	ck_assert_ptr_nonnull(file);
	text_table_begin(&table, columns, 3, 2);
	table.most = most;
	for (int i = 0; i < 9; i++) {
		tdt__string_puts(&table.text, cells[i]);
		text_table_cell(&table);
	}
	text_table_end(&table, &out);
	ck_assert_int_eq(tdt__out_end(&out), 0);
	ck_assert_int_eq(fclose(file), 0);
	ck_assert_str_eq(text, expected);
	free(text);
}

TEST(columns_are_as_wide_as_their_cells)
{
	const char *whole = "ID  NAME          PLACE\n"
			    " 1  -             demo/a.c:153\n"
			    "10  connection 7  x \xc3\xa4\xc3\xb6\xc3\xbc.c:1\n";

	prints_within(0, whole);
	prints_within(30, whole);
}

TEST(the_widest_texts_are_cut_to_the_columns_of_the_terminal)
{
	prints_within(25, "ID  NAME        PLACE\n"
			  " 1  -           demo/a.c>\n"
			  "10  connectio>  x \xc3\xa4\xc3\xb6\xc3\xbc.c:1\n");
}

TEST(no_text_is_cut_to_nothing)
{
	prints_within(4, "ID  NAME      PLACE\n"
			 " 1  -         demo/a.>\n"
			 "10  connect>  x \xc3\xa4\xc3\xb6\xc3\xbc.c>\n");
}
