// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree-printer/text, tree-printer/frame, tree-printer/strings, tree-printer/task_line,
 * tree-printer/terminal, tree-printer/view, tree-printer/words.  The text form of a trace, compared
 * with the whole text.
 */

#include <locale.h>

#include "lib/printed.h"
#include "lib/test.h"

static const char design_utf8[] =
	"task 7 \"bar\" pending 1.204 s, 2 leaves, spawned at demo/taskdump.c:88\n"
	"╼ foo_poll at demo/taskdump.c:18:11\n"
	" └╼ bar_poll at demo/taskdump.c:22:5\n"
	"    └╼ tdt_join_all at src/future/combine.c:58:9\n"
	"       ├╼ fiz_poll at demo/taskdump.c:26:15\n"
	"       │  └╼ pending_poll at demo/taskdump.c:14:8\n"
	"       └╼ buz_poll at demo/taskdump.c:30:11\n"
	"          └╼ baz_poll at demo/taskdump.c:34:15\n"
	"             └╼ pending_poll at demo/taskdump.c:14:8\n";

CASE(text)

TEST(the_design_s_example)
{
	TRACE(trace, design());

	expect_trace(trace, OPTIONS(UTF8), design_utf8);
	expect_trace(trace, OPTIONS(ASCII), design_ascii);
}

TEST(lines_are_utf8_where_the_locale_is)
{
	TRACE(trace, design());

	expect_trace(trace, NULL, design_ascii);
	expect_trace(trace, OPTIONS(UTF8), design_utf8);
	if (setlocale(LC_ALL, "C.UTF-8") != NULL)
		expect_trace(trace, NULL, design_utf8);
	else
		printf("# not tried: no locale C.UTF-8 here\n");
	setlocale(LC_ALL, "C");
}

TEST(print_is_print_with_defaults)
{
	TRACE(trace, design());
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	ck_assert_int_eq(tdt_trace_print(trace, file), 0);
	ck_assert_str_eq(text, design_ascii); /* flushed */
	fclose(file);
	free(text);
}

/* What is printed of a trace that has nothing else. */
static void expect_info(const struct tdt_task_info *of, const char *expected)
{
	struct tdt_task_info info = *of;

	info.size = sizeof(info);
	TRACE(trace, tdt_trace_new(&info));
	expect_trace(trace, OPTIONS(ASCII), expected);
}

TEST(the_task_s_line_tells_what_is_known)
{
	static const struct {
		struct tdt_task_info info;
		const char *line;
	} cases[] = {
		{ { .id = 1 }, "task 1 pending, has not run yet\n" },
		{ { .id = 1, .polls = 1 },
		  "task 1 pending less than 10 ms, no leaves (the poll cloned no waker)\n" },
		{ { .id = UINT64_MAX, .leaves = 1 },
		  "task 18446744073709551615 pending, 1 leaf\n" },
		{ { .id = 1, .leaves = 1, .polls = 1 },
		  "task 1 pending less than 10 ms, 1 leaf\n" },
		{ { .id = 2, .state = TDT_TASK_RUNNING }, "task 2 running, no leaves\n" },
		{ { .id = 3, .state = TDT_TASK_READY, .state_ns = 1 },
		  "task 3 ready 1 ns, no leaves\n" },
		{ { .id = 4, .state = TDT_TASK_PANICKED, .leaves = 3 },
		  "task 4 panicked, 3 leaves\n" },
		{ { .id = 4, .state = TDT_TASK_RUNNABLE, .leaves = 1 },
		  "task 4 runnable, 1 leaf\n" },
		{ { .id = 4,
		    .state = TDT_TASK_RUNNABLE,
		    .state_ns = 2000000,
		    .woken_ns = 2000000,
		    .woken_by = 3 },
		  "task 4 runnable for 2.000 ms, no leaves, woken by task 3\n" },
		{ { .id = 4,
		    .state = TDT_TASK_RUNNABLE,
		    .woken_ns = 2,
		    .woken_by = 3,
		    .aborted = 1 },
		  "task 4 runnable, no leaves, aborted by task 3\n" },
		{ { .id = 2, .state = TDT_TASK_RUNNING, .aborted = 1 },
		  "task 2 running, no leaves, aborted\n" },
		{ { .id = 2,
		    .leaves = 1,
		    .parent = 1,
		    .context = { .trace_id = { 1 }, .span_id = { 2 }, .valid = 1 } },
		  "task 2 pending, 1 leaf, spawned by task 1, trace "
		  "01000000000000000000000000000000 span 0200000000000000\n" },
		{ { .id = 5, .leaves_elsewhere = 1 },
		  "task 5 pending, no leaves, 1 more on other threads\n" },
		{ { .id = 5, .leaves = 2, .leaves_elsewhere = 3, .leaves_lost = 4 },
		  "task 5 pending, 2 leaves, 3 more on other threads, 4 more lost for want of "
		  "memory\n" },
		{ { .id = 5, .leaves = 3, .leaves_unsure = 2 },
		  "task 5 pending, 3 leaves\n"
		  "   some of these 2 may be over: the task may have gone on in the same poll\n" },
		{ { .id = 6, .leaves = 1, .file = "/a/../b.c" },
		  "task 6 pending, 1 leaf, spawned at /a/../b.c\n" },
		{ { .id = 6, .leaves = 1, .file = "b.c", .line = 3, .column = 9 },
		  "task 6 pending, 1 leaf, spawned at b.c:3:9\n" },
		{ { .id = 6, .leaves = 1, .file = "b.c", .column = 9 },
		  "task 6 pending, 1 leaf, spawned at b.c\n" },
		{ { .id = 6, .leaves = 1, .line = 9 }, "task 6 pending, 1 leaf\n" },
		{ { .id = 7, .leaves = 1, .name = "" }, "task 7 \"\" pending, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 999 }, "task 8 pending 999 ns, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 1000 }, "task 8 pending 1.000 us, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 12045 },
		  "task 8 pending 12.04 us, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 999999 },
		  "task 8 pending 999.9 us, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 1000000 },
		  "task 8 pending 1.000 ms, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 60000000000 },
		  "task 8 pending 60.00 s, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 3600123456789 },
		  "task 8 pending 3600 s, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = UINT64_MAX },
		  "task 8 pending 18446744073 s, 1 leaf\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_info(&cases[i].info, cases[i].line);
}

#define SECOND UINT64_C(1000000000)

TEST(the_task_s_line_tells_where_it_runs_and_how_old_the_tree_is)
{
	static const struct {
		struct tdt_task_info info;
		const char *line;
	} cases[] = {
		{ { .id = 7,
		    .name = "bar",
		    .state = TDT_TASK_RUNNING,
		    .state_ns = 3201 * SECOND / 1000,
		    .thread = 4711,
		    .syscall = "read",
		    .leaves = 1,
		    .file = "x.c",
		    .line = 88,
		    .parent = 3 },
		  "task 7 \"bar\" running for 3.201 s on thread 4711, in read(), spawned at x.c:88 "
		  "by task 3\n" },
		{ { .id = 7, .state = TDT_TASK_RUNNING, .thread = 4711, .leaves = 1 },
		  "task 7 running on thread 4711\n" },
		{ { .id = 7,
		    .state = TDT_TASK_RUNNING,
		    .state_ns = 3201 * SECOND / 1000,
		    .thread = 4711,
		    .syscall = "read",
		    .leaves = 1,
		    .blocking = 1 },
		  "task 7 running for 3.201 s on blocking thread 4711, in read()\n" },
		{ { .id = 7,
		    .state = TDT_TASK_RUNNING,
		    .thread = 4711,
		    .leaves = 2,
		    .leaves_lost = 1 },
		  "task 7 running on thread 4711, 2 leaves, 1 more lost for want of memory\n" },
		{ { .id = 7, .leaves = 1, .parent = 3 },
		  "task 7 pending, 1 leaf, spawned by task 3\n" },
		{ { .id = 7, .leaves = 1, .age_ns = 4 * SECOND, .polls_since = 12 },
		  "task 7 pending, 1 leaf, as seen 4.000 s and 12 polls ago\n" },
		{ { .id = 7, .leaves = 1, .age_ns = 4 * SECOND },
		  "task 7 pending, 1 leaf, as seen 4.000 s ago\n" },
		{ { .id = 7, .leaves = 1, .polls_since = 1 },
		  "task 7 pending, 1 leaf, as seen 1 poll ago\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_info(&cases[i].info, cases[i].line);
}

TEST(the_last_wake_up_is_told_where_it_is_news)
{
	static const struct {
		struct tdt_task_info info;
		const char *line;
	} cases[] = {
		/* It ended the wait before this one. */
		{ { .id = 7, .leaves = 1, .state_ns = SECOND, .woken_ns = SECOND + 5 },
		  "task 7 pending 1.000 s, 1 leaf\n" },
		/* By somebody. */
		{ { .id = 7,
		    .leaves = 1,
		    .state_ns = SECOND,
		    .woken_ns = SECOND + 5,
		    .woken_by = 4 },
		  "task 7 pending 1.000 s, 1 leaf, last woken 1.000 s ago by task 4\n" },
		/* And it has not been polled since. */
		{ { .id = 7, .leaves = 1, .state_ns = 9 * SECOND, .woken_ns = SECOND },
		  "task 7 pending 9.000 s, 1 leaf, last woken 1.000 s ago\n" },
		{ { .id = 7,
		    .leaves = 1,
		    .state = TDT_TASK_READY,
		    .woken_ns = SECOND,
		    .woken_by = 4 },
		  "task 7 ready, 1 leaf\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_info(&cases[i].info, cases[i].line);
}

TEST(owners_have_their_names_where_these_are_known)
{
	static const struct tdt_wait waits[3] = {
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x10, .owner = 5,
		  .owner_name = "connection 3"),
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x20, .owner = 6),
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x10, .owner = 5,
		  .owner_name = "connection 3"),
	};
	const struct tdt_wait *const list[] = { &waits[0], &waits[1], &waits[2] };
	const struct tdt_task_info info = { .id = 7, .leaves = 3, .n_waits = 3, .waits = list };

	expect_info(&info,
		    "task 7 pending, 3 leaves\n"
		    "   waits for a mutex (0x10) held by task 5 \"connection 3\" (2 leaves)\n"
		    "   waits for a mutex (0x20) held by task 6\n");
}

TEST(what_the_tree_doesn_t_say_of_waits_stands_below_the_line)
{
	static const struct {
		struct tdt_wait wait;
		const char *line;
	} cases[] = {
		{ WAIT(.kind = TDT_WAIT_TASK, .owner = 4), "   waits for task 4\n" },
		{ WAIT(.kind = TDT_WAIT_TASK, .owner = 1), "   waits for itself\n" },
		{ WAIT(.kind = TDT_WAIT_TASK), "" },
		{ WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f12, .owner = 9),
		  "   waits for a mutex (0x7f12) held by task 9\n" },
		{ WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f12, .owner = 1),
		  "   waits for a mutex (0x7f12) held by itself\n" },
		{ WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f12),
		  "   waits for a mutex (0x7f12)\n" },
		{ WAIT(.kind = TDT_WAIT_MUTEX), "" },
		{ WAIT(.kind = TDT_WAIT_CHANNEL, .object = 0x7f12),
		  "   waits for a channel (0x7f12)\n" },
		{ WAIT(.kind = TDT_WAIT_CHANNEL, .owner = 9),
		  "   waits for a channel of task 9\n" },
		{ WAIT(.kind = TDT_WAIT_SEMAPHORE, .object = 0x7f12),
		  "   waits for a semaphore (0x7f12)\n" },
		{ WAIT(.kind = TDT_WAIT_NOTIFICATION, .object = 0x7f12),
		  "   waits for a notification (0x7f12)\n" },
		{ WAIT(.kind = TDT_WAIT_TIMER, .object = 0x7f12), "" },
		{ WAIT(.kind = TDT_WAIT_TIMER, .object = 0x7f12, .owner = 9),
		  "   waits for a timer of task 9\n" },
		{ WAIT(.kind = TDT_WAIT_IO, .object = 7), "" },
		{ WAIT(.kind = TDT_WAIT_IO, .object = 7, .owner = 9),
		  "   waits for descriptor 7 of task 9\n" },
		{ WAIT(.kind = TDT_WAIT_IO, .owner = 9), "   waits for a descriptor of task 9\n" },
		{ WAIT(.kind = TDT_WAIT_OTHER, .object = 5), "" },
		{ WAIT(.kind = TDT_WAIT_OTHER, .object = 5, .owner = 9),
		  "   waits for something (0x5) of task 9\n" },
		{ WAIT(.kind = TDT_WAIT_UNKNOWN, .owner = 9),
		  "   waits for something of task 9\n" },
		{ WAIT(.kind = (enum tdt_wait_kind)99, .owner = 9),
		  "   waits for something of task 9\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tdt_wait *const list[] = { &cases[i].wait };
		const struct tdt_task_info info = {
			.id = 1, .leaves = 1, .waits = list, .n_waits = 1
		};
		char expected[200];

		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n%s", cases[i].line);
		expect_info(&info, expected);
	}
}

TEST(the_name_of_what_a_task_waits_for_is_shown)
{
	static const struct {
		struct tdt_wait wait;
		const char *line;
	} cases[] = {
		{ WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x10, .owner = 2, .name = "room 1"),
		  "for a mutex \"room 1\" (0x10) held by task 2" },
		{ WAIT(.kind = TDT_WAIT_CHANNEL, .name = "out"), "for a channel \"out\"" },
		{ WAIT(.kind = TDT_WAIT_SEMAPHORE, .object = 0x10, .name = "slots"),
		  "for a semaphore \"slots\" (0x10)" },
		{ WAIT(.kind = TDT_WAIT_IO, .object = 7, .name = "peer"),
		  "for descriptor 7 \"peer\"" },
		{ WAIT(.kind = TDT_WAIT_TIMER, .name = "retry"), "for a timer \"retry\"" },
		{ WAIT(.kind = TDT_WAIT_OTHER, .object = 1, .name = "\"\033[2J"),
		  "for something \"\\\"\\x1b[2J\" (0x1)" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct tdt_wait *const list[] = { &cases[i].wait };
		const struct tdt_task_info info = {
			.id = 1, .leaves = 1, .waits = list, .n_waits = 1
		};
		char expected[200];

		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n   waits %s\n",
			 cases[i].line);
		expect_info(&info, expected);
	}
}

struct taken {
	char text[512];
	size_t n, most; /* bytes that are taken before the writer fails */
};

static int take_bytes(void *arg, const char *bytes, size_t n)
{
	struct taken *taken = arg;

	if (taken->n + n > taken->most)
		return -ENOSPC;
	memcpy(taken->text + taken->n, bytes, n);
	taken->n += n;
	return 0;
}

TEST(a_trace_may_be_written_by_a_function_of_the_caller)
{
	const struct tdt_task_info info = { .size = sizeof info, .id = 1, .name = "a", .polls = 1 };
	TRACE(trace, tdt_trace_new(&info));
	struct taken taken = { .most = sizeof taken.text };
	struct tdt_print_options options = { .size = sizeof options,
					     .write = take_bytes,
					     .arg = &taken };

	ck_assert_int_eq(tdt_trace_print_with(trace, NULL, &options), 0);
	ck_assert_ptr_eq(strstr(taken.text, "task 1 \"a\" pending"), taken.text);
	taken.most = 0;
	ck_assert_fails(tdt_trace_print_with(trace, NULL, &options), ENOSPC);
	options.write = NULL;
	ck_assert_int_eq(tdt_trace_print_with(trace, NULL, &options), -EINVAL);
}

TEST(of_many_waits_the_first_are_told_and_the_others_counted)
{
	struct tdt_wait waits[10];
	const struct tdt_wait *list[10];
	const struct tdt_task_info info = { .id = 1, .leaves = 10, .waits = list, .n_waits = 10 };

	for (uint64_t i = 0; i < 10; i++) {
		waits[i] = (struct tdt_wait)WAIT(.kind = TDT_WAIT_TASK, .owner = i + 2);
		list[i] = &waits[i];
	}
	expect_info(
	    &info,
	    "task 1 pending, 10 leaves\n"
	    "   waits for task 2\n   waits for task 3\n   waits for task 4\n   waits for task 5\n"
	    "   waits for task 6\n   waits for task 7\n   waits for task 8\n   waits for task 9\n"
	    "   and for others (2 leaves)\n");
	expect_info(
	    &(const struct tdt_task_info){ .id = 1, .leaves = 9, .waits = list, .n_waits = 9 },
	    "task 1 pending, 9 leaves\n"
	    "   waits for task 2\n   waits for task 3\n   waits for task 4\n   waits for task 5\n"
	    "   waits for task 6\n   waits for task 7\n   waits for task 8\n   waits for task 9\n"
	    "   and for others (1 leaf)\n");
}

TEST(equal_waits_of_a_task_are_told_once)
{
	static const struct tdt_wait waits[] = {
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f12, .owner = 9),
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f12, .owner = 8),
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f12, .owner = 9),
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f13, .owner = 9),
		WAIT(.kind = TDT_WAIT_CHANNEL, .object = 0x7f12, .owner = 9),
		WAIT(.kind = TDT_WAIT_TIMER, .object = 0x7f12),
		WAIT(.kind = TDT_WAIT_MUTEX, .object = 0x7f12, .owner = 9),
		WAIT(.kind = TDT_WAIT_TIMER, .object = 0x7f12),
	};
	const struct tdt_wait *list[8];
	const struct tdt_task_info info = { .id = 1, .leaves = 8, .waits = list, .n_waits = 8 };

	for (int i = 0; i < 8; i++)
		list[i] = &waits[i];

	expect_info(&info, "task 1 pending, 8 leaves\n"
			   "   waits for a mutex (0x7f12) held by task 9 (3 leaves)\n"
			   "   waits for a mutex (0x7f12) held by task 8\n"
			   "   waits for a mutex (0x7f13) held by task 9\n"
			   "   waits for a channel (0x7f12) of task 9\n");
}

TEST(the_decimal_point_is_a_point_in_every_locale)
{
	static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
	TRACE(trace, design());
	bool tried = false;

	for (size_t i = 0; i < 4; i++) {
		if (setlocale(LC_ALL, locales[i]) == NULL)
			continue;
		tried = true;
		expect_trace(trace, OPTIONS(ASCII), design_ascii);
	}
	if (!tried)
		printf("# not tried: no locale with another decimal point here\n");
	setlocale(LC_ALL, "C");
}

TEST(a_frame_tells_what_is_known)
{
	static const struct {
		struct tdt_frame frame;
		const char *line, *full, *address;
	} cases[] = {
		{ FRAME(.pc = 0x1234, .function = "f", .file = "/b/s/x.c", .directory = "/b",
			.line = 3, .column = 4, .module = "/l/lib.so", .module_offset = 0x234,
			.symbol = "f", .symbol_offset = 0x1f),
		  "- f at s/x.c:3:4\n", "- f at /b/s/x.c:3:4\n", "- f+0x1f\n" },
		{ FRAME(.function = "f", .file = "/b/x.c", .line = 3), "- f at /b/x.c:3\n",
		  "- f at /b/x.c:3\n", "- f\n" },
		{ FRAME(.function = "f", .file = "/b/x.c", .column = 3, .pc = 7), "- f at /b/x.c\n",
		  "- f at /b/x.c\n", "- 0x7\n" },
		{ FRAME(.function = "a::b(int)", .symbol = "_ZN1a1bEi", .symbol_offset = 16,
			.module = "/l/lib.so", .module_offset = 0x1234),
		  "- a::b(int) (lib.so+0x1234)\n", "- a::b(int) (lib.so+0x1234)\n",
		  "- _ZN1a1bEi+0x10\n" },
		{ FRAME(.pc = 0x7f0000001234, .module = "/l/lib.so", .module_offset = 0x1234),
		  "- lib.so+0x1234\n", "- lib.so+0x1234\n", "- lib.so+0x1234\n" },
		{ FRAME(.pc = 0x7f0000001234, .file = "/b/x.c", .line = 2, .module = "lib.so",
			.module_offset = 0x1234),
		  "- lib.so+0x1234 at /b/x.c:2\n", "- lib.so+0x1234 at /b/x.c:2\n",
		  "- lib.so+0x1234\n" },
		{ FRAME(.pc = 0x7f0000001234), "- 0x7f0000001234\n", "- 0x7f0000001234\n",
		  "- 0x7f0000001234\n" },
		{ FRAME(.function = "g", .file = "/b/x.h", .line = 2, .inlined = 1, .pc = 1,
			.module = "m"),
		  "- g at /b/x.h:2\n", "- g at /b/x.h:2\n", "- g (inlined)\n" },
		{ FRAME(.function = "h", .guessed = 1), "- h (callers may be missing)\n",
		  "- h (callers may be missing)\n", "- h (callers may be missing)\n" },
		{ FRAME(.function = "", .pc = 0x1f, .file = "/b/x.c", .line = 3),
		  "- 0x1f at /b/x.c:3\n", "- 0x1f at /b/x.c:3\n", "- 0x1f\n" },
		{ FRAME(.module = "/l/", .pc = 0x1f), "- 0x1f\n", "- 0x1f\n", "- 0x1f\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TRACE(trace, new_trace(1));
		char expected[200];

		add(trace, NULL, cases[i].frame, 1);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n%s", cases[i].line);
		expect_trace(trace, OPTIONS(ASCII), expected);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n%s", cases[i].full);
		expect_trace(trace, OPTIONS(ASCII, .full_paths = 1), expected);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n%s",
			 cases[i].address);
		expect_trace(trace, OPTIONS(ASCII, .addresses = 1), expected);
	}
}

TEST(paths_are_shown_below_the_directory_they_were_compiled_in)
{
	static const struct {
		const char *file, *directory, *shown;
	} cases[] = {
		{ "/b/src/x.c", "/b", "src/x.c" },
		{ "/b/src/x.c", "/b/", "src/x.c" },
		{ "/b/./src//x.c", "/b/.", "src/x.c" },
		{ "/b/obj/../src/x.c", "/b/obj/..", "src/x.c" },
		{ "/b/obj/../src/x.c", "/b/obj", "/b/src/x.c" },
		{ "/build/x.c", "/b", "/build/x.c" },
		{ "/../../x.c", "/b", "/x.c" },
		{ "../../a/../x.c", "/b", "../../x.c" },
		{ "a/../../x.c", NULL, "../x.c" },
		{ "./x.c", "", "x.c" },
		{ "/x.c", "/", "/x.c" },
		{ "/b", "/b", "/b" },
		{ "/b/x/", "/b", "x" },
		{ "/b/..x/...", "/b", "..x/..." },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		TRACE(trace, new_trace(1));
		char expected[200];

		add(trace, NULL, (struct tdt_frame)FRAME(.function = "f", .file = cases[i].file,
							 .directory = cases[i].directory), 1);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n- f at %s\n",
			 cases[i].shown);
		expect_trace(trace, OPTIONS(ASCII), expected);
	}
}

TEST(outermost_functions_stand_at_the_margin)
{
	expect_tree("a:1(b:2*) c:3* d:4(e:5* f:6*)", OPTIONS(UTF8),
		    "╼ a at x.c:1\n"
		    " └╼ b at x.c:2\n"
		    "╼ c at x.c:3\n"
		    "╼ d at x.c:4\n"
		    " ├╼ e at x.c:5\n"
		    " └╼ f at x.c:6\n");
}

TEST(leaves_are_counted_where_it_is_not_plain)
{
	expect_tree("a:1*(b:2**(c:3***) d:4*)", OPTIONS(ASCII),
		    "- a at x.c:1 (1 leaf)\n"
		    " |- b at x.c:2 (2 leaves)\n"
		    " |  `- c at x.c:3 (3 leaves)\n"
		    " `- d at x.c:4\n");
}

TEST(repeats_are_drawn_once)
{
	expect_tree("a:1( b:2@m1(c:3*) b:2@m2(c:3*) d:4* b:2@m3(c:3*) )", OPTIONS(UTF8),
		    "╼ a at x.c:1\n"
		    " ├╼ b at x.c:2 ×3\n"
		    " │  └╼ c at x.c:3\n"
		    " └╼ d at x.c:4\n");
	expect_tree("b:2@m1* b:2@m2*", OPTIONS(ASCII), "- b at x.c:2 x2\n");
	/* repeats within repeats */
	expect_tree("a:1@m1(b:2@m1* b:2@m2*) a:1@m2(b:2@m3* b:2@m4*)", OPTIONS(ASCII),
		    "- a at x.c:1 x2\n"
		    " `- b at x.c:2 x2\n");
}

TEST(what_differs_anywhere_below_is_no_repeat)
{
	expect_tree("a:1(b:2@m1(c:3*) b:2@m2(c:4*))", OPTIONS(ASCII),
		    "- a at x.c:1\n"
		    " |- b at x.c:2\n"
		    " |  `- c at x.c:3\n"
		    " `- b at x.c:2\n"
		    "    `- c at x.c:4\n");
	expect_tree("a:1(b:2@m1(c:3*) b:2@m2(c:3**))", OPTIONS(ASCII),
		    "- a at x.c:1\n"
		    " |- b at x.c:2\n"
		    " |  `- c at x.c:3\n"
		    " `- b at x.c:2\n"
		    "    `- c at x.c:3 (2 leaves)\n");
	expect_tree("a:1@m1(b:2@m1* b:2@m2*) a:1@m2(b:2@m3*)", OPTIONS(ASCII),
		    "- a at x.c:1\n"
		    " `- b at x.c:2 x2\n"
		    "- a at x.c:1\n"
		    " `- b at x.c:2\n");
}

TEST(plumbing_that_only_leads_on_is_left_out)
{
	expect_tree("tdt_traced_poll:9(foo:1(tdt_select:8(bar:2*)))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- bar at x.c:2\n");
	expect_tree(
	    "foo:1(bar:2@/usr/lib/libtdt.so.0.0.0(baz:3@libtdt-rt.so.0(fiz:4@/l/libtdt.sox.d/m*)))",
	    OPTIONS(ASCII),
	    "- foo at x.c:1\n"
	    " `- fiz at x.c:4\n");
	expect_tree("foo:1(tdt_select:8(bar:2*))", OPTIONS(ASCII, .plumbing = 1),
		    "- foo at x.c:1\n"
		    " `- tdt_select at x.c:8\n"
		    "    `- bar at x.c:2\n");
	expect_tree("foo:1(a_tdt_:2(libtdt.so:3*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- a_tdt_ at x.c:2\n"
		    "    `- libtdt.so at x.c:3\n");
}

TEST(plumbing_that_branches_is_shown)
{
	expect_tree("foo:1(tdt_join_all:8(tdt_help:7(bar:2*) baz:3*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_join_all at x.c:8\n"
		    "    |- bar at x.c:2\n"
		    "    `- baz at x.c:3\n");
	expect_tree("foo:1(tdt_join_all:8(tdt_sleep:6* tdt_sleep:7*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_join_all at x.c:8\n"
		    "    |- tdt_sleep at x.c:6\n"
		    "    `- tdt_sleep at x.c:7\n");
	/* its hidden leaves are ways on, too */
	expect_tree("foo:1(tdt__poll:8(tdt__a:6* tdt__b:7*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt__poll at x.c:8 (2 leaves)\n");
	expect_tree("foo:1(tdt_timeout_ms:8*(bar:2*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_timeout_ms at x.c:8 (1 leaf)\n"
		    "    `- bar at x.c:2\n");
}

TEST(the_call_that_is_waited_in_is_shown)
{
	expect_tree("foo:1(tdt__traced_poll:9(tdt_sleep:6*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_sleep at x.c:6\n");
	expect_tree("foo:1(tdt_sleep:6* bar:2*)", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " |- tdt_sleep at x.c:6\n"
		    " `- bar at x.c:2\n");
	expect_tree("foo:1(tdt_lock.part.0:6@libtdt-rt.so.0*)", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_lock.part.0 at x.c:6\n");
	expect_tree("foo:1(tdt_sleep:6*)", OPTIONS(FOLDED), "task 1;foo;tdt_sleep 1\n");
}

TEST(of_several_calls_the_innermost_is_shown)
{
	expect_tree("foo:1(tdt_timeout_ms:8(tdt_sleep:6*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_sleep at x.c:6\n");
	expect_tree("foo:1(tdt_timeout_ms:8*(tdt_sleep:6*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_timeout_ms at x.c:8 (1 leaf)\n"
		    "    `- tdt_sleep at x.c:6\n");
	expect_tree("foo:1(tdt_timeout_ms:8(bar:2(tdt_sleep:6*)))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- bar at x.c:2\n"
		    "    `- tdt_sleep at x.c:6\n");
}

TEST(what_a_call_is_made_of_is_not_shown)
{
	expect_tree("foo:1(tdt_sleep:6(tdt__slot_register:7(tdt_waker_clone:8*)))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_sleep at x.c:6\n");
	expect_tree("foo:1(tdt_sleep:6(listen:7@libtdt-rt.so.0*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_sleep at x.c:6\n");
	expect_tree("foo:1(tdt_sleep:6(tdt_substitute_clone:7(tdt_probe_task__waker__clone:8*)))",
		    OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_sleep at x.c:6\n");
	expect_tree("foo:1(tdt_async_await:6(tdt__sleep:7*))", OPTIONS(ASCII), "- foo at x.c:1\n");
	expect_tree("foo:1(tdt_sleep:6(tdt__a:7* tdt__b:8**))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_sleep at x.c:6 (3 leaves)\n");
}

TEST(helpers_of_our_headers_are_no_calls)
{
	TRACE(trace, new_trace(1));
	const struct tdt_node *node =
	    add(trace, NULL, (struct tdt_frame)FRAME(.function = "foo"), 0);

	add(trace, node,
	    (struct tdt_frame)FRAME(.function = "tdt_help", .file = "/usr/include/tdt/help.h"), 1);
	expect_trace(trace, OPTIONS(ASCII), "task 1 pending, 1 leaf\n- foo\n");
}

TEST(a_leaf_in_plumbing_that_has_no_name_counts_for_who_called_it)
{
	expect_tree("foo:1(tdt__traced_poll:9(tdt__sleep:6*))", OPTIONS(ASCII), "- foo at x.c:1\n");
	expect_tree("foo:1(tdt__sleep:6* bar:2*)", OPTIONS(ASCII),
		    "- foo at x.c:1 (1 leaf)\n"
		    " `- bar at x.c:2\n");
}

TEST(a_task_of_nothing_but_plumbing_shows_its_leaf)
{
	expect_tree("tdt__traced_poll:9(tdt__sleep:6*)", OPTIONS(ASCII), "- tdt__sleep at x.c:6\n");
	expect_tree("tdt__traced_poll:9(tdt_sleep:6(tdt_waker_clone:7*))", OPTIONS(ASCII),
		    "- tdt_sleep at x.c:6\n");
	expect_tree("tdt_join_all:9(tdt_sleep:6* tdt_sleep:7*)", OPTIONS(ASCII),
		    "- tdt_join_all at x.c:9\n"
		    " |- tdt_sleep at x.c:6\n"
		    " `- tdt_sleep at x.c:7\n");
}

TEST(hiding_plumbing_joins_what_then_reads_the_same)
{
	expect_tree("foo:1(tdt_a:8(bar:2*) tdt_b:9(bar:2*))", OPTIONS(UTF8),
		    "╼ foo at x.c:1\n"
		    " └╼ bar at x.c:2 ×2\n");
}

TEST(depth_is_limited_and_the_rest_counted)
{
	static const char tree[] = "a:1(b:2(c:3* d:4(e:5**)) tdt__f:6(tdt__g:7*)) h:8(i:9) j:10*";

	expect_tree(tree, OPTIONS(ASCII, .max_depth = 1),
		    "- a at x.c:1 (1 leaf)\n"
		    " `- ... 4 frames and 3 leaves below\n"
		    "- h at x.c:8\n"
		    " `- ... 1 frame below\n"
		    "- j at x.c:10\n");
	expect_tree(tree, OPTIONS(ASCII, .max_depth = 2),
		    "- a at x.c:1 (1 leaf)\n"
		    " `- b at x.c:2\n"
		    "    `- ... 3 frames and 3 leaves below\n"
		    "- h at x.c:8\n"
		    " `- i at x.c:9\n"
		    "- j at x.c:10\n");
	expect_tree("a:1(tdt_x:2(b:3(c:4*) tdt__y:5* d:6*))", OPTIONS(ASCII, .max_depth = 1),
		    "- a at x.c:1\n"
		    " `- ... 4 frames and 3 leaves below\n");
	expect_tree("a:1(b:2*)", OPTIONS(ASCII, .max_depth = 2), "- a at x.c:1\n `- b at x.c:2\n");
	expect_tree("a:1(b:2*)", OPTIONS(ASCII, .max_depth = UINT32_MAX),
		    "- a at x.c:1\n `- b at x.c:2\n");
	expect_tree("a:1(b:2* c:3(d:4*))", OPTIONS(FOLDED, .max_depth = 1), "task 1;a;... 2\n");
}

TEST(cuts_are_told_in_words)
{
	static const char *const words[] = {
		[TDT_CUT_LIMIT] = "more frames than the limit",
		[TDT_CUT_NO_INFO] = "a frame without unwind information",
		[TDT_CUT_CORRUPT] = "the stack or its unwind information is corrupt",
		[TDT_CUT_STACK] = "the leaf was polled on another stack",
		[TDT_CUT_MEMORY] = "no memory for more frames",
		[TDT_CUT_UNSUPPORTED] = "a frame whose unwind information can't be followed",
	};

	for (int cut = TDT_CUT_LIMIT; cut <= TDT_CUT_UNSUPPORTED; cut++) {
		TRACE(trace, new_trace(1));
		const struct tdt_frame frame = { .kind = TDT_NODE_CUT, .cut = (enum tdt_cut)cut };
		char expected[200];

		add(trace, add(trace, NULL, frame, 0), (struct tdt_frame)FRAME(.function = "f"), 1);
		snprintf(expected, sizeof(expected),
			 "task 1 pending, 1 leaf\n- ... cut: %s\n `- f\n", words[cut]);
		expect_trace(trace, OPTIONS(ASCII), expected);
		expect_trace(trace, OPTIONS(ASCII, .addresses = 1), expected);
		snprintf(expected, sizeof(expected), "task 1;... cut: %s;f 1\n", words[cut]);
		expect_trace(trace, OPTIONS(FOLDED), expected);
	}
}

TEST(colors_when_asked_for)
{
	TRACE(trace, grow("a:1(tdt__b:2@m* tdt__c:3*) d:4*"));
	const struct tdt_frame cut = { .kind = TDT_NODE_CUT, .cut = TDT_CUT_LIMIT };

	add(trace, NULL, cut, 1);
	expect_trace(trace, OPTIONS(UTF8, .color = TDT_PRINT_YES, .max_depth = 1),
		     "task \033[1m1\033[0m pending, 1 leaf\n"
		     "╼ \033[1ma\033[0m\033[2m at x.c:1\033[0m (2 leaves)\n"
		     "╼ \033[1md\033[0m\033[2m at x.c:4\033[0m\n"
		     "╼ \033[31m... cut: more frames than the limit\033[0m\n");
}

/* Whether a new terminal gets colours with the choice. */
static bool colors_a_terminal(enum tdt_print_choice choice)
{
	TRACE(trace, grow("a:1*"));
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	char text[4096];
	FILE *terminal;
	ssize_t n;

	ck_assert_int_ge(master, 0);
	ck_assert_int_eq(grantpt(master), 0);
	ck_assert_int_eq(unlockpt(master), 0);
	terminal = fopen(ptsname(master), "w");
	ck_assert_ptr_nonnull(terminal);
	ck_assert_int_eq(tdt_trace_print_with(trace, terminal, OPTIONS(ASCII, .color = choice)), 0);
	n = read(master, text, sizeof(text));
	ck_assert_int_gt(n, 0);
	fclose(terminal);
	close(master);
	return memchr(text, '\033', (size_t)n) != NULL;
}

TEST(colors_by_themselves_only_on_a_terminal_that_can)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct tdt_trace *trace = design();

	if (master < 0) {
		printf("# not tried: no pseudo terminals here\n");
		tdt_trace_free(trace);
		return;
	}
	close(master);
	unsetenv("NO_COLOR");
	setenv("TERM", "xterm", 1);
	ck_assert(colors_a_terminal(TDT_PRINT_AUTO));
	ck_assert(!colors_a_terminal(TDT_PRINT_NO));
	expect_trace(trace, OPTIONS(ASCII), design_ascii);
	setenv("NO_COLOR", "", 1);
	ck_assert(colors_a_terminal(TDT_PRINT_AUTO));
	setenv("NO_COLOR", "1", 1);
	ck_assert(!colors_a_terminal(TDT_PRINT_AUTO));
	ck_assert(colors_a_terminal(TDT_PRINT_YES));
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	ck_assert(!colors_a_terminal(TDT_PRINT_AUTO));
	unsetenv("TERM");
	ck_assert(!colors_a_terminal(TDT_PRINT_AUTO));
	tdt_trace_free(trace);
}

/* A name with all that could hurt, and how it comes out in UTF-8 and in ASCII. */
static const char evil[] =
    "\033[2J\n\t\x01\x7f \"\\ é€𝄞 \xff\xc3( \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xc2\x9b"
    "\xe2\x80\xae \xe2\x81\xa6 \xe2\x82";
#define EVIL_END(quote)                                                                            \
	" \\xff\\xc3( \\xc0\\x80 \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\u009b\\u202e \\u2066 "     \
	"\\xe2\\x82" quote
#define EVIL_UTF8(quote) "\\x1b[2J\\n\\t\\x01\\x7f " quote "\"\\\\ é€𝄞" EVIL_END("")
#define EVIL_ASCII(quote)                                                                          \
	"\\x1b[2J\\n\\t\\x01\\x7f " quote "\"\\\\ \\u00e9\\u20ac\\U0001d11e" EVIL_END("")

TEST(nothing_in_a_name_reaches_a_terminal_as_it_is)
{
	struct tdt_task_info info = {
		.size = sizeof(info), .id = 1, .name = evil, .file = evil, .leaves = 1
	};
	TRACE(trace, tdt_trace_new(&info));

	add(trace, NULL, (struct tdt_frame)FRAME(.function = evil, .file = evil), 1);
	add(trace, NULL, (struct tdt_frame)FRAME(.module = evil), 1);
	expect_trace(trace, OPTIONS(UTF8),
		     "task 1 \"" EVIL_UTF8("\\") "\" pending, 1 leaf, spawned at "
		     EVIL_UTF8("") "\n"
		     "╼ " EVIL_UTF8("") " at " EVIL_UTF8("") "\n"
		     "╼ " EVIL_UTF8("") "\n");
	expect_trace(trace, OPTIONS(ASCII),
		     "task 1 \"" EVIL_ASCII("\\") "\" pending, 1 leaf, spawned at " EVIL_ASCII(
			 "") "\n"
			     "- " EVIL_ASCII("") " at " EVIL_ASCII("") "\n"
								       "- " EVIL_ASCII("") "\n");
}

/* Characters that turn the direction of writing round, end lines, or are seen by nobody. */
static const struct {
	uint32_t first, last;
} unseen[] = {
	{ 0x80, 0x9f },	    { 0xad, 0xad },	{ 0x34f, 0x34f },     { 0x61c, 0x61c },
	{ 0x115f, 0x1160 }, { 0x17b4, 0x17b5 }, { 0x180b, 0x180f },   { 0x200b, 0x200f },
	{ 0x2028, 0x202e }, { 0x2060, 0x206f }, { 0x3164, 0x3164 },   { 0xfeff, 0xfeff },
	{ 0xffa0, 0xffa0 }, { 0xfff0, 0xfffb }, { 0x1bca0, 0x1bca3 }, { 0x1d173, 0x1d17a },
	{ 0xe0000, 0xe0fff },
};

static void encode(char *bytes, uint32_t code)
{
	static const uint32_t first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	int n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

	bytes[n] = '\0';
	for (int i = n - 1; i > 0; i--, code >>= 6)
		bytes[i] = (char)(0x80 | (code & 0x3f));
	bytes[0] = (char)(first[n] | code);
}

static void expect_name(uint32_t code, bool escaped)
{
	char name[8], text[16], expected[64];
	struct tdt_task_info info = { .size = sizeof(info), .id = 1, .name = name, .leaves = 1 };

	encode(name, code);
	snprintf(text, sizeof(text), code < 0x10000 ? "\\u%04x" : "\\U%08x", code);
	snprintf(expected, sizeof(expected), "task 1 \"%s\" pending, 1 leaf\n",
		 escaped ? text : name);
	TRACE(trace, tdt_trace_new(&info));
	expect_trace(trace, OPTIONS(UTF8), expected);
}

TEST(no_character_of_a_name_goes_unseen, .to = sizeof(unseen) / sizeof(unseen[0]))
{
	for (uint32_t code = unseen[_i].first; code <= unseen[_i].last; code++)
		expect_name(code, true);
}

TEST(characters_beside_those_are_printed)
{
	static const uint32_t seen[] = { 0xa0,	 0xae,	 0x61b,	 0x61d,	 0x180a, 0x1810,  0x200a,
					 0x2010, 0x2027, 0x202f, 0x205f, 0x2070, 0xfefe,  0xff00,
					 0xfffc, 0xfffd, 0xfe0f, 0xe9,	 0x20ac, 0x1d11e, 0x1f980 };

	for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
		expect_name(seen[i], false);
}

CASE(size)

/* Comparing each with each takes minutes, and so runs into the test's timeout. */
TEST(a_hundred_thousand_siblings_are_printed)
{
	TRACE(trace, new_trace(1));
	uint32_t n = times_here(100000);
	char *text, same[64], last[64];

	for (uint32_t i = 0; i < n; i++) {
		const struct tdt_node *node =
		    add(trace, NULL, (struct tdt_frame)FRAME(.pc = i + 1), 0);

		add(trace, node, (struct tdt_frame)FRAME(.function = "f"), 1);
	}
	for (uint64_t i = 0; i < n; i++)
		add(trace, NULL, (struct tdt_frame)FRAME(.pc = i << 20, .function = "same"), 1);
	text = print(trace, OPTIONS(UTF8));
	snprintf(same, sizeof(same), "╼ same ×%" PRIu32 "\n", n);
	snprintf(last, sizeof(last), "╼ %#" PRIx32 "\n └╼ f\n", n);
	ck_assert_ptr_nonnull(strstr(text, same));
	ck_assert_ptr_nonnull(strstr(text, last));
	free(text);
}
