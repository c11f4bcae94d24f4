// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/print, tree-printer/folded.  Printing as such: folded stacks compared with
 * the whole text, and what may go wrong in any form.
 */

#include "lib/printed.h"
#include "lib/test.h"

CASE(folded)

TEST(folded_has_a_line_for_each_place_that_leaves_wait_in)
{
	TRACE(trace, design());

	expect_trace(trace, OPTIONS(FOLDED),
		     "bar;foo_poll;bar_poll;tdt_join_all;fiz_poll;pending_poll 1\n"
		     "bar;foo_poll;bar_poll;tdt_join_all;buz_poll;baz_poll;pending_poll 1\n");
	expect_tree("a:1*(b:2@m1** tdt_c:4(b:2@m2* b:5)) d:7*", OPTIONS(FOLDED),
		    "task 1;a 1\n"
		    "task 1;a;b 2\n"
		    "task 1;a;tdt_c;b 1\n"
		    "task 1;d 1\n");
	expect_tree("a:1(tdt_c:4(b:2@m*))", OPTIONS(FOLDED), "task 1;a;b 1\n");
	expect_tree("a:1(tdt_c:4(b:2@m*))", OPTIONS(FOLDED, .plumbing = 1), "task 1;a;tdt_c;b 1\n");
	expect_tree("a:1(b:2@m*)", OPTIONS(FOLDED, .addresses = 1), "task 1;a;m 1\n");
	expect_tree("", OPTIONS(FOLDED), "");
}

TEST(folded_names_hold_no_separator)
{
	struct tdt_task_info info = { .size = sizeof(info), .id = 1, .name = "a;b\nc" };
	TRACE(trace, tdt_trace_new(&info));

	add(trace, NULL, (struct tdt_frame)FRAME(.function = "f;\n;g h"), 1);
	expect_trace(trace, OPTIONS(FOLDED), "a:b\\nc;f:\\n:g h 1\n");
}

CASE(errors)

TEST(wrong_options_are_refused)
{
	struct {
		struct tdt_print_options options;
		unsigned char more[4];
	} large = { .options = { .size = sizeof(large), ASCII } };
	const struct tdt_print_options bad[] = {
		{ .size = 0 },
		{ .size = 1 },
		{ .size = sizeof(bad[0]), .format = (enum tdt_print_format)3 },
		{ .size = sizeof(bad[0]), .format = (enum tdt_print_format)-1 },
		{ .size = sizeof(bad[0]), .utf8 = (enum tdt_print_choice)3 },
		{ .size = sizeof(bad[0]), .color = (enum tdt_print_choice)-1 },
	};
	TRACE(trace, design());
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		ck_assert_fails(tdt_trace_print_with(trace, file, &bad[i]), EINVAL);
	}
	ck_assert_int_eq(tdt_trace_print_with(NULL, file, NULL), -EINVAL);
	ck_assert_int_eq(tdt_trace_print_with(trace, NULL, NULL), -EINVAL);
	ck_assert_int_eq(tdt_trace_print(NULL, NULL), -EINVAL);
	large.more[3] = 1;
	ck_assert_fails(tdt_trace_print_with(trace, file, &large.options), E2BIG);
	fclose(file);
	ck_assert_uint_eq(size, 0);
	free(text);
	large.more[3] = 0;
	expect_trace(trace, &large.options, design_ascii);
	large.options.size = offsetof(struct tdt_print_options, max_depth);
	large.options.max_depth = 1;
	expect_trace(trace, &large.options, design_ascii);
}

TEST(a_full_disk_is_told)
{
	TRACE(trace, design());

	for (int form = TDT_PRINT_TEXT; form <= TDT_PRINT_FOLDED; form++) {
		for (int buffered = 0; buffered <= 1; buffered++) {
			STREAM(file, fopen("/dev/full", "w"));

			setvbuf(file, NULL, buffered ? _IOFBF : _IONBF, BUFSIZ);
			ck_assert_fails(
			    tdt_trace_print_with(trace, file,
						 OPTIONS(.format = (enum tdt_print_format)form)),
			    ENOSPC);
		}
	}
}

TEST(a_reader_that_went_away_is_told)
{
	TRACE(trace, design());
	int ends[2];
	FILE *file;

	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(pipe(ends), 0);
	close(ends[0]);
	file = fdopen(ends[1], "w");
	ck_assert_int_eq(tdt_trace_print(trace, file), -EPIPE);
	fclose(file);
	file = fopen("/dev/null", "r");
	ck_assert_int_eq(tdt_trace_print(trace, file), -EBADF);
	fclose(file);
}

struct shared {
	const struct tdt_trace *trace;
	FILE *file;
};

static void *print_often(void *argument)
{
	struct shared *shared = argument;

	for (int i = 0; i < 100; i++)
		if (tdt_trace_print_with(shared->trace, shared->file, OPTIONS(ASCII)) != 0)
			return argument;
	return NULL;
}

TEST(traces_of_several_threads_come_out_in_one_piece)
{
	TRACE(trace, design());

	/*
	 * Not open_memstream(): the thread sanitizer does not see the lock of a FILE, but does see
	 * its buffer grow.
	 */
	struct shared shared = { .trace = trace, .file = tmpfile() };
	char text[sizeof(design_ascii)];
	pthread_t threads[4];

	threads_start(threads, 4, print_often, &shared);
	for (int i = 0; i < 4; i++) {
		void *failed;

		pthread_join(threads[i], &failed);
		ck_assert_ptr_null(failed);
	}
	rewind(shared.file);
	for (int i = 0; i < 400; i++) {
		text[fread(text, 1, sizeof(text) - 1, shared.file)] = '\0';
		ck_assert_str_eq(text, design_ascii);
	}
	ck_assert_int_eq(getc(shared.file), EOF);
	fclose(shared.file);
}

struct printing {
	struct tdt_trace *trace;
	struct tdt_print_options options;
	FILE *file; /* whose text is: */
	char text[8192];
};

static int print_once(void *argument)
{
	struct printing *printing = argument;
	int err;

	rewind(printing->file);
	memset(printing->text, 0, sizeof(printing->text));
	err = tdt_trace_print_with(printing->trace, printing->file, &printing->options);
	return err == -ENOMEM && strstr(printing->text, "]}\n") != NULL
		   ? -EPROTO
		   : err; /* must not look whole */
}

TEST(every_allocation_may_fail)
{
	struct printing printing = { .trace = design() };
	char buffer[512];

	printing.file = fmemopen(printing.text, sizeof(printing.text), "w");
	setvbuf(printing.file, buffer, _IOFBF, sizeof(buffer));
	for (int form = TDT_PRINT_TEXT; form <= TDT_PRINT_FOLDED; form++) {
		printing.options = *OPTIONS(.format = (enum tdt_print_format)form);
		no_memory_each(print_once, &printing, form == TDT_PRINT_JSON ? 1 : 5);
	}
	fclose(printing.file);
	tdt_trace_free(printing.trace);
}
