// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers cli/stacks.  Two profiles that are read into one table, and the forms of
 * the table.
 */

#include "cli/stacks.h"
#include "lib/test.h"

static struct stacks stacks;
static unsigned long line;

/* Read folded stacks.  Returns what the reader returns. */
static int read_text(unsigned side, const char *text)
{
	const struct stacks_side to = { &stacks, side };
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	int error;

	ck_assert_ptr_nonnull(file);
	error = stacks_read_folded(&to, file, &line);
	fclose(file);
	return error;
}

/* Read a profile as JSON.  Returns 1, 0 or -1, as the reader does. */
static int read_profile(const char *text, struct reader *reader)
{
	struct stacks_side to = { &stacks, 1 };
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct tdt_trace *trace;
	int result;

	*reader = (struct reader){ .file = file, .profile = stacks_read_profile, .arg = &to };
	result = reader_next(reader, &trace, NULL);
	ck_assert_ptr_null(trace);
	fclose(file);
	return result;
}

static void expect_stack(size_t i, const char *text, uint64_t before, uint64_t after)
{
	ck_assert_uint_lt(i, stacks.n);
	ck_assert_str_eq(stacks.stack[i].text, text);
	ck_assert_uint_eq(stacks.stack[i].count[0], before);
	ck_assert_uint_eq(stacks.stack[i].count[1], after);
}

CASE(two_profiles)

TEST(stacks_with_one_text_are_one)
{
	ck_assert_int_eq(read_text(0, "a;b 1\n\na c 2\r\na;b 3"), 0);
	ck_assert_int_eq(read_text(1, "a;b 5\na;bc 6\n"), 0);
	ck_assert_uint_eq(stacks.n, 3);
	expect_stack(0, "a;b", 4, 5);
	expect_stack(1, "a c", 2, 0);
	expect_stack(2, "a;bc", 0, 6);
	ck_assert(stacks.total[0] == 6 && stacks.total[1] == 11);
	stacks_fini(&stacks);
}

TEST(a_table_may_grow)
{
	char text[3000 * 8] = "";
	size_t at = 0;

	for (int i = 0; i < 3000; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%d 1\n", i);
	ck_assert_int_eq(read_text(0, text), 0);
	ck_assert_int_eq(read_text(1, text), 0);
	ck_assert_uint_eq(stacks.n, 3000);
	expect_stack(2999, "2999", 1, 1);
	stacks_fini(&stacks);
}

TEST(a_line_that_is_no_stack_is_named)
{
	static const char *const damaged[] = { "a;b", " 1", "a -1", "a +1", "a 1x", "a ",
					       "a 18446744073709551616" };

	for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
		char text[64];

		snprintf(text, sizeof text, "a 1\n%s\n", damaged[i]);
		ck_assert_int_eq(read_text(0, text), -EINVAL);
		ck_assert_uint_eq(line, 2);
		stacks_fini(&stacks);
	}
}

TEST(counts_that_are_too_large_are_refused)
{
	ck_assert_int_eq(read_text(0, "a 18446744073709551615\nb 1\n"), -EOVERFLOW);
	stacks_fini(&stacks);
}

#define P "{\"tdt\":1,\"profile\":{},\"places\":["

TEST(a_profile_has_folded_stacks)
{
	struct reader reader;
	const char *text = P "{\"state\":\"waiting\",\"kind\":\"mutex\",\"task\":\"c *\",\"ns\":7,"
			     "\"frames\":[{\"function\":\"g;h\"},{\"module\":\"m\"},"
			     "{\"pc\":\"0x1\"},{}]},"
			     "{\"state\":\"polling\",\"task\":\"\",\"ns\":\"8\",\"frames\":[]}]}";

	ck_assert_int_eq(read_profile(text, &reader), 1);
	ck_assert_uint_eq(stacks.n, 2);
	expect_stack(0, "c *;waiting: mutex;?;0x1;m;g:h", 0, 7);
	expect_stack(1, "(no name);polling;(unknown)", 0, 8);
	stacks_fini(&stacks);
}

TEST(what_is_no_profile_is_refused_with_the_place_and_reason)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "{\"tdt\":1,\"profile\":{}}", "places: not an array" },
		{ P "1]}", "places[0].ns: is missing" },
		{ P "{\"ns\":1},{\"ns\":-1}]}",
		  "places[1].ns: not a whole number from 0 to 2^64 - 1" },
		{ P "{\"ns\":1,\"state\":1}]}", "places[0].state: not a string" },
		{ P "{\"ns\":1,\"frames\":1}]}", "places[0].frames: not an array" },
		{ P "{\"ns\":1,\"frames\":[{\"function\":1}]}]}", "frame.function: not a string" },
		{ P "{\"ns\":\"18446744073709551615\"},{\"ns\":1}]}",
		  "times that are too long, or too much of it" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct reader reader;

		ck_assert_int_eq(read_profile(cases[i].text, &reader), -1);
		ck_assert_str_eq(reader.message, cases[i].message);
		stacks_fini(&stacks);
	}
}

/* What is printed, for the caller to free. */
static char *print_form(enum tdt_print_format format)
{
	const struct tdt_print_options options = { .utf8 = TDT_PRINT_NO, .color = TDT_PRINT_NO };
	char *text = NULL;
	size_t n;
	struct tdt__out out = { .file = open_memstream(&text, &n) };

	if (format == TDT_PRINT_JSON)
		stacks_json(&out, &stacks);
	else
		(format == TDT_PRINT_TEXT ? stacks_text : stacks_folded)(&out, &stacks, &options);
	ck_assert_int_eq(tdt__out_end(&out), 0);
	fclose(out.file);
	return text;
}

static void expect_form(enum tdt_print_format format, const char *expected)
{
	TEXT(text, print_form(format));

	ck_assert_str_eq(text, expected);
}

TEST(each_form_has_both_counts)
{
	ck_assert_int_eq(read_text(0, "a;b 10\na;c 30\n"), 0);
	ck_assert_int_eq(read_text(1, "a;b 3\na;d\033 1\n"), 0);
	expect_form(TDT_PRINT_FOLDED, "a;b 10 3\na;c 30 0\na;d\\x1b 0 1\n");
	expect_form(TDT_PRINT_JSON,
		    "{\"tdt\":1,\"diff\":{\"before\":40,\"after\":4},\"stacks\":["
		    "{\"before\":10,\"after\":3,\"stack\":\"a;b\"},"
		    "{\"before\":30,\"after\":0,\"stack\":\"a;c\"},"
		    "{\"before\":0,\"after\":1,\"stack\":\"a;d\\u001B\"}]}\n");
	expect_form(TDT_PRINT_TEXT,
		    "2 profiles: 3 stacks, 1 of them only in the first one, 1 only in the second "
		    "one\n\n"
		    " CHANGE  BEFORE   AFTER  STACK\n"
		    "-75.0 %  75.0 %   0.0 %  a;c\n"
		    "+50.0 %  25.0 %  75.0 %  a;b\n"
		    "+25.0 %   0.0 %  25.0 %  a;d\\x1b\n");
	stacks_fini(&stacks);
}

TEST(empty_profiles_have_no_shares)
{
	ck_assert_int_eq(read_text(0, "a 0\n"), 0);
	expect_form(TDT_PRINT_TEXT,
		    "2 profiles: 1 stack, 0 of them only in the first one, 0 only in the second "
		    "one\n\n"
		    "CHANGE  BEFORE  AFTER  STACK\n"
		    " 0.0 %   0.0 %  0.0 %  a\n");
	stacks_fini(&stacks);
}

static int add_once(void *argument)
{
	const struct stacks_side to = { &stacks, 0 };
	int error = stacks_add(&to, "a;b", 3, 1);

	stacks_fini(&stacks);
	return error;
}

TEST(every_allocation_of_a_table_may_fail)
{
	no_memory_each(add_once, NULL, 2);
}
