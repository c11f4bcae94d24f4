// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Every form a trace is printed in, against the very text; and read back. */

#include <config.h>

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tdt/print.h>

#include "../tree-printer/read_json.h"
#include "no_memory.h"

#define OPTIONS(...) (&(struct tdt_print_options){ .size = sizeof(struct tdt_print_options), __VA_ARGS__ })
#define UTF8 .utf8 = TDT_PRINT_YES
#define ASCII .utf8 = TDT_PRINT_NO
#define FOLDED ASCII, .format = TDT_PRINT_FOLDED
#define JSON .format = TDT_PRINT_JSON

static struct tdt_trace *new_trace(uint32_t leaves)
{
	struct tdt_trace_info info = { .size = sizeof(info), .id = 1, .leaves = leaves };
	struct tdt_trace *trace = tdt_trace_new(&info);

	ck_assert_ptr_nonnull(trace);
	return trace;
}

static const struct tdt_node *add(struct tdt_trace *trace, const struct tdt_node *parent, struct tdt_frame frame,
				  uint32_t leaves)
{
	const struct tdt_node *node;

	frame.size = sizeof(frame);
	node = tdt_trace_add(trace, parent, &frame, leaves);
	ck_assert_ptr_nonnull(node);
	return node;
}

/*
 * A tree from a line of text: `name:line`, then `@module`, then `*` for each leaf, then its children in parentheses.
 * All lie in /b/x.c of a unit compiled in /b.
 */
static struct tdt_trace *grow(const char *text)
{
	struct tdt_trace *trace = new_trace(1);
	const struct tdt_node *parent = tdt_trace_root(trace), *node = NULL;
	char name[64], module[64];

	for (int n; *text != '\0'; text += n) {
		struct tdt_frame frame = { .kind = TDT_NODE_FRAME, .function = name, .file = "/b/x.c",
					   .directory = "/b" };
		uint32_t leaves = 0;

		n = 1;
		if (*text == ' ')
			continue;
		if (*text == '(') {
			parent = node;
			continue;
		}
		if (*text == ')') {
			parent = tdt_node_parent(parent);
			continue;
		}
		ck_assert_int_eq(sscanf(text, "%63[^:]:%u%n", name, &frame.line, &n), 2);
		if (text[n] == '@') {
			int more;

			ck_assert_int_eq(sscanf(text + n, "@%63[a-z.0-9/-]%n", module, &more), 1);
			frame.module = module;
			n += more;
		}
		for (; text[n] == '*'; n++)
			leaves++;
		node = add(trace, parent, frame, leaves);
	}
	return trace;
}

/* What is printed, for the caller to free. */
static char *print(const struct tdt_trace *trace, const struct tdt_print_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	errno = EDOM;
	ck_assert_int_eq(tdt_trace_print_with(trace, file, options), 0);
	ck_assert_int_eq(errno, EDOM); /* success leaves it alone */
	fclose(file);
	return text;
}

static void expect_trace(const struct tdt_trace *trace, const struct tdt_print_options *options, const char *expected)
{
	char *text = print(trace, options);

	ck_assert_str_eq(text, expected);
	free(text);
}

/* The same without the task's line. */
static void expect_tree(const char *tree, const struct tdt_print_options *options, const char *expected)
{
	struct tdt_trace *trace = grow(tree);
	char *text = print(trace, options);

	ck_assert_str_eq(options->format == TDT_PRINT_TEXT ? strchr(text, '\n') + 1 : text, expected);
	free(text);
	tdt_trace_free(trace);
}

/* ---- The text form ---- */

#define HERE(name, at, of_line, of_column)                                                                             \
	((struct tdt_frame){ .kind = TDT_NODE_FRAME, .function = name, .file = at, .directory = "/home/me/tdt",        \
			     .line = of_line, .column = of_column, .module = "/home/me/tdt/taskdump" })

static struct tdt_trace *design(void)
{
	struct tdt_trace_info info = { .size = sizeof(info), .id = 7, .name = "bar", .file = "demo/taskdump.c",
				       .line = 88, .leaves = 2, .state_ns = 1204345678 };
	struct tdt_trace *trace = tdt_trace_new(&info);
	const struct tdt_node *node, *join;

	node = add(trace, NULL, HERE("foo_poll", "/home/me/tdt/demo/taskdump.c", 18, 11), 0);
	node = add(trace, node, HERE("bar_poll", "/home/me/tdt/demo/taskdump.c", 22, 5), 0);
	join = add(trace, node, HERE("tdt_join_all", "/home/me/tdt/src/combine.c", 58, 9), 0);
	node = add(trace, join, HERE("fiz_poll", "/home/me/tdt/demo/taskdump.c", 26, 15), 0);
	add(trace, node, HERE("pending_poll", "/home/me/tdt/demo/taskdump.c", 14, 8), 1);
	node = add(trace, join, HERE("buz_poll", "/home/me/tdt/demo/taskdump.c", 30, 11), 0);
	node = add(trace, node, HERE("baz_poll", "/home/me/tdt/demo/taskdump.c", 34, 15), 0);
	add(trace, node, HERE("pending_poll", "/home/me/tdt/demo/taskdump.c", 14, 8), 1);
	return trace;
}

static const char design_utf8[] =
	"task 7 \"bar\" pending 1.204 s, 2 leaves, spawned at demo/taskdump.c:88\n"
	"╼ foo_poll at demo/taskdump.c:18:11\n"
	" └╼ bar_poll at demo/taskdump.c:22:5\n"
	"    └╼ tdt_join_all at src/combine.c:58:9\n"
	"       ├╼ fiz_poll at demo/taskdump.c:26:15\n"
	"       │  └╼ pending_poll at demo/taskdump.c:14:8\n"
	"       └╼ buz_poll at demo/taskdump.c:30:11\n"
	"          └╼ baz_poll at demo/taskdump.c:34:15\n"
	"             └╼ pending_poll at demo/taskdump.c:14:8\n";

static const char design_ascii[] =
	"task 7 \"bar\" pending 1.204 s, 2 leaves, spawned at demo/taskdump.c:88\n"
	"- foo_poll at demo/taskdump.c:18:11\n"
	" `- bar_poll at demo/taskdump.c:22:5\n"
	"    `- tdt_join_all at src/combine.c:58:9\n"
	"       |- fiz_poll at demo/taskdump.c:26:15\n"
	"       |  `- pending_poll at demo/taskdump.c:14:8\n"
	"       `- buz_poll at demo/taskdump.c:30:11\n"
	"          `- baz_poll at demo/taskdump.c:34:15\n"
	"             `- pending_poll at demo/taskdump.c:14:8\n";

START_TEST(the_design_s_example)
{
	struct tdt_trace *trace = design();

	expect_trace(trace, OPTIONS(UTF8), design_utf8);
	expect_trace(trace, OPTIONS(ASCII), design_ascii);
	tdt_trace_free(trace);
}
END_TEST

START_TEST(lines_are_utf8_where_the_locale_is)
{
	struct tdt_trace *trace = design();

	expect_trace(trace, NULL, design_ascii);
	expect_trace(trace, OPTIONS(UTF8), design_utf8);
	if (setlocale(LC_ALL, "C.UTF-8") != NULL)
		expect_trace(trace, NULL, design_utf8);
	else
		printf("# no locale C.UTF-8 here: not tried\n");
	setlocale(LC_ALL, "C");
	tdt_trace_free(trace);
}
END_TEST

START_TEST(print_is_print_with_defaults)
{
	struct tdt_trace *trace = design();
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	ck_assert_int_eq(tdt_trace_print(trace, file), 0);
	ck_assert_str_eq(text, design_ascii); /* flushed */
	fclose(file);
	free(text);
	tdt_trace_free(trace);
}
END_TEST

START_TEST(the_task_s_line_tells_what_is_known)
{
	static const struct {
		struct tdt_trace_info info;
		const char *line;
	} cases[] = {
		{ { .id = 1 }, "task 1 pending, no leaves (the poll cloned no waker)\n" },
		{ { .id = UINT64_MAX, .leaves = 1 }, "task 18446744073709551615 pending, 1 leaf\n" },
		{ { .id = 2, .state = TDT_TASK_RUNNING }, "task 2 running, no leaves\n" },
		{ { .id = 3, .state = TDT_TASK_READY, .state_ns = 1 }, "task 3 ready 1 ns, no leaves\n" },
		{ { .id = 4, .state = TDT_TASK_PANICKED, .leaves = 3 }, "task 4 panicked, 3 leaves\n" },
		{ { .id = 5, .leaves_elsewhere = 1 }, "task 5 pending, no leaves, 1 more on other threads\n" },
		{ { .id = 5, .leaves = 2, .leaves_elsewhere = 3, .leaves_lost = 4 },
		  "task 5 pending, 2 leaves, 3 more on other threads, 4 more lost for want of memory\n" },
		{ { .id = 6, .leaves = 1, .file = "/a/../b.c" }, "task 6 pending, 1 leaf, spawned at /a/../b.c\n" },
		{ { .id = 6, .leaves = 1, .file = "b.c", .line = 3, .column = 9 },
		  "task 6 pending, 1 leaf, spawned at b.c:3:9\n" },
		{ { .id = 6, .leaves = 1, .file = "b.c", .column = 9 }, "task 6 pending, 1 leaf, spawned at b.c\n" },
		{ { .id = 6, .leaves = 1, .line = 9 }, "task 6 pending, 1 leaf\n" },
		{ { .id = 7, .leaves = 1, .name = "" }, "task 7 \"\" pending, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 999 }, "task 8 pending 999 ns, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 1000 }, "task 8 pending 1.000 us, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 12045 }, "task 8 pending 12.04 us, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 999999 }, "task 8 pending 999.9 us, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 1000000 }, "task 8 pending 1.000 ms, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 60000000000 }, "task 8 pending 60.00 s, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = 3600123456789 }, "task 8 pending 3600 s, 1 leaf\n" },
		{ { .id = 8, .leaves = 1, .state_ns = UINT64_MAX }, "task 8 pending 18446744073 s, 1 leaf\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tdt_trace_info info = cases[i].info;
		struct tdt_trace *trace;

		info.size = sizeof(info);
		trace = tdt_trace_new(&info);
		expect_trace(trace, OPTIONS(ASCII), cases[i].line);
		tdt_trace_free(trace);
	}
}
END_TEST

START_TEST(the_decimal_point_is_a_point_in_every_locale)
{
	static const char *const locales[] = { "de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR" };
	struct tdt_trace *trace = design();
	bool tried = false;

	for (size_t i = 0; i < 4; i++) {
		if (setlocale(LC_ALL, locales[i]) == NULL)
			continue;
		tried = true;
		expect_trace(trace, OPTIONS(ASCII), design_ascii);
	}
	if (!tried)
		printf("# no locale with another decimal point here: not tried\n");
	setlocale(LC_ALL, "C");
	tdt_trace_free(trace);
}
END_TEST

#define FRAME(...) { .kind = TDT_NODE_FRAME, __VA_ARGS__ }

START_TEST(a_frame_tells_what_is_known)
{
	static const struct {
		struct tdt_frame frame;
		const char *line, *full, *address;
	} cases[] = {
		{ FRAME(.pc = 0x1234, .function = "f", .file = "/b/s/x.c", .directory = "/b", .line = 3, .column = 4,
			.module = "/l/lib.so", .module_offset = 0x234, .symbol = "f", .symbol_offset = 0x1f),
		  "- f at s/x.c:3:4\n", "- f at /b/s/x.c:3:4\n", "- f+0x1f\n" },
		{ FRAME(.function = "f", .file = "/b/x.c", .line = 3), "- f at /b/x.c:3\n", "- f at /b/x.c:3\n",
		  "- f\n" },
		{ FRAME(.function = "f", .file = "/b/x.c", .column = 3, .pc = 7), "- f at /b/x.c\n", "- f at /b/x.c\n",
		  "- 0x7\n" },
		{ FRAME(.function = "a::b(int)", .symbol = "_ZN1a1bEi", .symbol_offset = 16, .module = "/l/lib.so",
			.module_offset = 0x1234),
		  "- a::b(int) (lib.so+0x1234)\n", "- a::b(int) (lib.so+0x1234)\n", "- _ZN1a1bEi+0x10\n" },
		{ FRAME(.pc = 0x7f0000001234, .module = "/l/lib.so", .module_offset = 0x1234), "- lib.so+0x1234\n",
		  "- lib.so+0x1234\n", "- lib.so+0x1234\n" },
		{ FRAME(.pc = 0x7f0000001234, .file = "/b/x.c", .line = 2, .module = "lib.so", .module_offset = 0x1234),
		  "- lib.so+0x1234 at /b/x.c:2\n", "- lib.so+0x1234 at /b/x.c:2\n", "- lib.so+0x1234\n" },
		{ FRAME(.pc = 0x7f0000001234), "- 0x7f0000001234\n", "- 0x7f0000001234\n", "- 0x7f0000001234\n" },
		{ FRAME(.function = "g", .file = "/b/x.h", .line = 2, .inlined = 1, .pc = 1, .module = "m"),
		  "- g at /b/x.h:2\n", "- g at /b/x.h:2\n", "- g (inlined)\n" },
		{ FRAME(.function = "h", .guessed = 1), "- h (callers may be missing)\n",
		  "- h (callers may be missing)\n", "- h (callers may be missing)\n" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tdt_trace *trace = new_trace(1);
		char expected[200];

		add(trace, NULL, cases[i].frame, 1);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n%s", cases[i].line);
		expect_trace(trace, OPTIONS(ASCII), expected);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n%s", cases[i].full);
		expect_trace(trace, OPTIONS(ASCII, .full_paths = 1), expected);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n%s", cases[i].address);
		expect_trace(trace, OPTIONS(ASCII, .addresses = 1), expected);
		tdt_trace_free(trace);
	}
}
END_TEST

START_TEST(paths_are_shown_below_the_directory_they_were_compiled_in)
{
	static const struct {
		const char *file, *directory, *shown;
	} cases[] = {
		{ "/b/src/x.c", "/b", "src/x.c" },         { "/b/src/x.c", "/b/", "src/x.c" },
		{ "/b/./src//x.c", "/b/.", "src/x.c" },    { "/b/obj/../src/x.c", "/b/obj/..", "src/x.c" },
		{ "/b/obj/../src/x.c", "/b/obj", "/b/src/x.c" }, { "/build/x.c", "/b", "/build/x.c" },
		{ "/../../x.c", "/b", "/x.c" },            { "../../a/../x.c", "/b", "../../x.c" },
		{ "a/../../x.c", NULL, "../x.c" },         { "./x.c", "", "x.c" },
		{ "/x.c", "/", "/x.c" },                   { "/b", "/b", "/b" },
		{ "/b/x/", "/b", "x" },                    { "/b/..x/...", "/b", "..x/..." },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tdt_trace *trace = new_trace(1);
		char expected[200];

		add(trace, NULL, (struct tdt_frame)FRAME(.function = "f", .file = cases[i].file,
							 .directory = cases[i].directory), 1);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n- f at %s\n", cases[i].shown);
		expect_trace(trace, OPTIONS(ASCII), expected);
		tdt_trace_free(trace);
	}
}
END_TEST

START_TEST(outermost_functions_stand_at_the_margin)
{
	expect_tree("a:1(b:2*) c:3* d:4(e:5* f:6*)", OPTIONS(UTF8),
		    "╼ a at x.c:1\n"
		    " └╼ b at x.c:2\n"
		    "╼ c at x.c:3\n"
		    "╼ d at x.c:4\n"
		    " ├╼ e at x.c:5\n"
		    " └╼ f at x.c:6\n");
}
END_TEST

START_TEST(leaves_are_counted_where_it_is_not_plain)
{
	expect_tree("a:1*(b:2**(c:3***) d:4*)", OPTIONS(ASCII),
		    "- a at x.c:1 (1 leaf)\n"
		    " |- b at x.c:2 (2 leaves)\n"
		    " |  `- c at x.c:3 (3 leaves)\n"
		    " `- d at x.c:4\n");
}
END_TEST

START_TEST(repeats_are_drawn_once)
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
END_TEST

START_TEST(what_differs_anywhere_below_is_no_repeat)
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
END_TEST

START_TEST(plumbing_that_only_leads_on_is_left_out)
{
	expect_tree("tdt_traced_poll:9(foo:1(tdt_select:8(bar:2*)))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- bar at x.c:2\n");
	expect_tree("foo:1(bar:2@/usr/lib/libtdt.so.0.0.0(baz:3@libtdt-rt.so.0(fiz:4@/l/libtdt.sox.d/m*)))",
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
END_TEST

START_TEST(plumbing_that_branches_is_shown)
{
	expect_tree("foo:1(tdt_join_all:8(tdt_help:7(bar:2*) baz:3*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_join_all at x.c:8\n"
		    "    |- bar at x.c:2\n"
		    "    `- baz at x.c:3\n");
	/* its hidden leaves are ways on, too */
	expect_tree("foo:1(tdt_join_all:8(tdt_sleep:6* tdt_sleep:7*))", OPTIONS(ASCII),
		    "- foo at x.c:1\n"
		    " `- tdt_join_all at x.c:8 (2 leaves)\n");
}
END_TEST

START_TEST(a_leaf_in_plumbing_counts_for_who_called_it)
{
	expect_tree("foo:1(tdt_traced_poll:9(tdt_sleep:6*))", OPTIONS(ASCII), "- foo at x.c:1\n");
	expect_tree("foo:1(tdt_sleep:6* bar:2*)", OPTIONS(ASCII),
		    "- foo at x.c:1 (1 leaf)\n"
		    " `- bar at x.c:2\n");
}
END_TEST

START_TEST(a_task_of_nothing_but_plumbing_shows_its_leaf)
{
	expect_tree("tdt_traced_poll:9(tdt_sleep:6*)", OPTIONS(ASCII), "- tdt_sleep at x.c:6\n");
	expect_tree("tdt_join_all:9(tdt_sleep:6* tdt_sleep:7*)", OPTIONS(ASCII),
		    "- tdt_join_all at x.c:9\n"
		    " |- tdt_sleep at x.c:6\n"
		    " `- tdt_sleep at x.c:7\n");
}
END_TEST

START_TEST(hiding_plumbing_joins_what_then_reads_the_same)
{
	expect_tree("foo:1(tdt_a:8(bar:2*) tdt_b:9(bar:2*))", OPTIONS(UTF8),
		    "╼ foo at x.c:1\n"
		    " └╼ bar at x.c:2 ×2\n");
}
END_TEST

START_TEST(depth_is_limited_and_the_rest_counted)
{
	static const char tree[] = "a:1(b:2(c:3* d:4(e:5**)) tdt_f:6(tdt_g:7*)) h:8(i:9) j:10*";

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
	expect_tree("a:1(tdt_x:2(b:3(c:4*) tdt_y:5* d:6*))", OPTIONS(ASCII, .max_depth = 1),
		    "- a at x.c:1\n"
		    " `- ... 4 frames and 3 leaves below\n");
	expect_tree("a:1(b:2*)", OPTIONS(ASCII, .max_depth = 2), "- a at x.c:1\n `- b at x.c:2\n");
	expect_tree("a:1(b:2*)", OPTIONS(ASCII, .max_depth = UINT32_MAX), "- a at x.c:1\n `- b at x.c:2\n");
	expect_tree("a:1(b:2* c:3(d:4*))", OPTIONS(FOLDED, .max_depth = 1), "task 1;a;... 2\n");
}
END_TEST

START_TEST(cuts_are_told_in_words)
{
	static const char *const words[] = {
		[TDT_CUT_LIMIT] = "more frames than the limit",
		[TDT_CUT_NO_INFO] = "a frame without unwind information",
		[TDT_CUT_CORRUPT] = "the stack or its unwind information is corrupt",
		[TDT_CUT_STACK] = "the leaf was polled on another stack",
		[TDT_CUT_MEMORY] = "no memory for more frames",
	};

	for (int cut = TDT_CUT_LIMIT; cut <= TDT_CUT_MEMORY; cut++) {
		struct tdt_trace *trace = new_trace(1);
		const struct tdt_frame frame = { .kind = TDT_NODE_CUT, .cut = (enum tdt_cut)cut };
		char expected[200];

		add(trace, add(trace, NULL, frame, 0), (struct tdt_frame)FRAME(.function = "f"), 1);
		snprintf(expected, sizeof(expected), "task 1 pending, 1 leaf\n- ... cut: %s\n `- f\n", words[cut]);
		expect_trace(trace, OPTIONS(ASCII), expected);
		expect_trace(trace, OPTIONS(ASCII, .addresses = 1), expected);
		snprintf(expected, sizeof(expected), "task 1;... cut: %s;f 1\n", words[cut]);
		expect_trace(trace, OPTIONS(FOLDED), expected);
		tdt_trace_free(trace);
	}
}
END_TEST

START_TEST(colors_when_asked_for)
{
	struct tdt_trace *trace = grow("a:1(tdt_b:2@m* tdt_c:3*) d:4*");
	const struct tdt_frame cut = { .kind = TDT_NODE_CUT, .cut = TDT_CUT_LIMIT };

	add(trace, NULL, cut, 1);
	expect_trace(trace, OPTIONS(UTF8, .color = TDT_PRINT_YES, .max_depth = 1),
		     "task \033[1m1\033[0m \033[33mpending\033[0m, 1 leaf\n"
		     "╼ \033[1ma\033[0m\033[2m at x.c:1\033[0m (2 leaves)\n"
		     "╼ \033[1md\033[0m\033[2m at x.c:4\033[0m\n"
		     "╼ \033[31m... cut: more frames than the limit\033[0m\n");
	tdt_trace_free(trace);
}
END_TEST

/* Whether a new terminal gets colours with the choice. */
static bool colors_a_terminal(enum tdt_print_choice choice)
{
	struct tdt_trace *trace = grow("a:1*");
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
	tdt_trace_free(trace);
	return memchr(text, '\033', (size_t)n) != NULL;
}

START_TEST(colors_by_themselves_only_on_a_terminal_that_can)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	struct tdt_trace *trace = design();

	if (master < 0) {
		printf("# no pseudo terminals here: not tried\n");
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
END_TEST

/* A name with all that could hurt, and how it comes out in UTF-8 and in ASCII. */
static const char evil[] = "\033[2J\n\t\x01\x7f \"\\ é€𝄞 \xff\xc3( \xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xc2\x9b"
			   "\xe2\x80\xae \xe2\x81\xa6 \xe2\x82";
#define EVIL_END(quote)                                                                                                \
	" \\xff\\xc3( \\xc0\\x80 \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\u009b\\u202e \\u2066 \\xe2\\x82" quote
#define EVIL_UTF8(quote) "\\x1b[2J\\n\\t\\x01\\x7f " quote "\"\\\\ é€𝄞" EVIL_END("")
#define EVIL_ASCII(quote) "\\x1b[2J\\n\\t\\x01\\x7f " quote "\"\\\\ \\u00e9\\u20ac\\U0001d11e" EVIL_END("")

START_TEST(nothing_in_a_name_reaches_a_terminal_as_it_is)
{
	struct tdt_trace_info info = { .size = sizeof(info), .id = 1, .name = evil, .file = evil, .leaves = 1 };
	struct tdt_trace *trace = tdt_trace_new(&info);

	add(trace, NULL, (struct tdt_frame)FRAME(.function = evil, .file = evil), 1);
	add(trace, NULL, (struct tdt_frame)FRAME(.module = evil), 1);
	expect_trace(trace, OPTIONS(UTF8),
		     "task 1 \"" EVIL_UTF8("\\") "\" pending, 1 leaf, spawned at " EVIL_UTF8("") "\n"
		     "╼ " EVIL_UTF8("") " at " EVIL_UTF8("") "\n"
		     "╼ " EVIL_UTF8("") "\n");
	expect_trace(trace, OPTIONS(ASCII),
		     "task 1 \"" EVIL_ASCII("\\") "\" pending, 1 leaf, spawned at " EVIL_ASCII("") "\n"
		     "- " EVIL_ASCII("") " at " EVIL_ASCII("") "\n"
		     "- " EVIL_ASCII("") "\n");
	tdt_trace_free(trace);
}
END_TEST

/* ---- Folded stacks ---- */

START_TEST(folded_has_a_line_for_each_place_that_leaves_wait_in)
{
	struct tdt_trace *trace = design();

	expect_trace(trace, OPTIONS(FOLDED),
		     "bar;foo_poll;bar_poll;tdt_join_all;fiz_poll;pending_poll 1\n"
		     "bar;foo_poll;bar_poll;tdt_join_all;buz_poll;baz_poll;pending_poll 1\n");
	tdt_trace_free(trace);
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
END_TEST

START_TEST(folded_names_hold_no_separator)
{
	struct tdt_trace_info info = { .size = sizeof(info), .id = 1, .name = "a;b\nc" };
	struct tdt_trace *trace = tdt_trace_new(&info);

	add(trace, NULL, (struct tdt_frame)FRAME(.function = "f;\n;g h"), 1);
	expect_trace(trace, OPTIONS(FOLDED), "a:b\\nc;f:\\n:g h 1\n");
	tdt_trace_free(trace);
}
END_TEST

/* ---- JSON ---- */

static struct tdt_trace *everything(void)
{
	struct tdt_trace_info info = { .size = sizeof(info), .id = UINT64_MAX, .name = "n\"é", .file = "f.c", .line = 1,
				       .column = 2, .state = TDT_TASK_RUNNING, .leaves = 3, .leaves_elsewhere = 4,
				       .leaves_lost = 5, .state_ns = (UINT64_C(1) << 53) - 1,
				       .polls = UINT64_C(1) << 53 };
	struct tdt_trace *trace = tdt_trace_new(&info);
	const struct tdt_frame cut = { .kind = TDT_NODE_CUT, .cut = TDT_CUT_NO_INFO };
	const struct tdt_node *node = add(trace, NULL, cut, 0);

	add(trace, NULL, (struct tdt_frame)FRAME(.pc = 255), UINT32_MAX);
	add(trace, node,
	    (struct tdt_frame)FRAME(.pc = UINT64_MAX, .function = "f", .file = "/b/f.c", .directory = "/b", .line = 6,
				    .column = 7, .module = "/l/m.so", .module_offset = 8, .symbol = "_Zf",
				    .symbol_offset = 9, .build_id = "ab12", .inlined = 1, .guessed = 1), 1);
	return trace;
}

static const char everything_json[] =
	"{\"tdt\":1,\"task\":{\"id\":\"18446744073709551615\",\"name\":\"n\\\"\\u00E9\",\"file\":\"f.c\",\"line\":1,"
	"\"column\":2,\"state\":\"running\",\"state_ns\":9007199254740991,\"polls\":\"9007199254740992\",\"leaves\":3,"
	"\"leaves_elsewhere\":4,\"leaves_lost\":5},\"nodes\":[{\"id\":0,\"kind\":\"task\"},"
	"{\"id\":1,\"parent\":0,\"kind\":\"cut\",\"cut\":\"no-info\"},"
	"{\"id\":2,\"parent\":0,\"kind\":\"frame\",\"pc\":\"0xff\",\"leaves\":4294967295},"
	"{\"id\":3,\"parent\":1,\"kind\":\"frame\",\"pc\":\"0xffffffffffffffff\",\"function\":\"f\","
	"\"file\":\"/b/f.c\",\"directory\":\"/b\",\"line\":6,\"column\":7,\"module\":\"/l/m.so\",\"module_offset\":\"0x8\","
	"\"symbol\":\"_Zf\",\"symbol_offset\":\"0x9\",\"build_id\":\"ab12\",\"inlined\":true,\"guessed\":true,"
	"\"leaves\":1}]}\n";

/* Read the next trace of `text`; NULL: none. */
static struct tdt_trace *read_back(const char *text)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, strlen(text), "r");
	struct reader reader = { .file = file };
	struct tdt_trace *trace;

	reader_next(&reader, &trace);
	ck_assert_str_eq(reader.message, "");
	fclose(file);
	return trace;
}

START_TEST(json_tells_all_and_reads_back_the_same)
{
	struct tdt_trace *trace = everything(), *again;

	expect_trace(trace, OPTIONS(JSON), everything_json);
	tdt_trace_free(trace);
	again = read_back(everything_json);
	expect_trace(again, OPTIONS(JSON), everything_json);
	tdt_trace_free(again);
}
END_TEST

START_TEST(json_has_the_plumbing_too)
{
	struct tdt_trace *trace = grow("a:1(tdt_b:2(c:3*))");
	char *text = print(trace, OPTIONS(JSON, .max_depth = 1));

	ck_assert_ptr_nonnull(strstr(text, "\"tdt_b\""));
	ck_assert_ptr_nonnull(strstr(text, "\"id\":3"));
	free(text);
	tdt_trace_free(trace);
}
END_TEST

START_TEST(every_word_of_the_json_reads_back)
{
	for (int state = TDT_TASK_WAITING; state <= TDT_TASK_PANICKED; state++) {
		struct tdt_trace_info info = { .size = sizeof(info), .state = (enum tdt_task_state)state };
		struct tdt_trace *trace = tdt_trace_new(&info), *again;
		char *text = print(trace, OPTIONS(JSON));

		again = read_back(text);
		ck_assert_int_eq(tdt_trace_info(again)->state, state);
		tdt_trace_free(trace);
		tdt_trace_free(again);
		free(text);
	}
	for (int cut = TDT_CUT_LIMIT; cut <= TDT_CUT_MEMORY; cut++) {
		struct tdt_trace *trace = new_trace(0), *again;
		const struct tdt_frame frame = { .kind = TDT_NODE_CUT, .cut = (enum tdt_cut)cut };
		char *text;

		add(trace, NULL, frame, 0);
		text = print(trace, OPTIONS(JSON));
		again = read_back(text);
		ck_assert_int_eq(tdt_node_frame(tdt_node_next(tdt_trace_root(again)))->cut, cut);
		tdt_trace_free(trace);
		tdt_trace_free(again);
		free(text);
	}
}
END_TEST

START_TEST(json_is_ascii_and_valid_whatever_a_name_holds)
{
	struct tdt_trace_info info = { .size = sizeof(info), .name = "\xff\xe9t\xc3\xa9\xed\xa0\x80\x1b" };
	struct tdt_trace *trace = tdt_trace_new(&info), *again;
	char *text = print(trace, OPTIONS(JSON));

	for (const char *at = text; *at != '\0'; at++)
		ck_assert(*at == '\n' || (*at >= ' ' && *at <= '~'));
	again = read_back(text);
	ck_assert_str_eq(tdt_trace_info(again)->name, "\xef\xbf\xbd\xef\xbf\xbdt\xc3\xa9"
						      "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\x1b");
	free(text);
	tdt_trace_free(trace);
	tdt_trace_free(again);
}
END_TEST

#define TASK "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\"},\"nodes\":"
#define ROOT "{\"id\":0,\"kind\":\"task\"}"

START_TEST(json_that_is_no_trace_is_refused_with_the_place_and_reason)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{ "x", "1:1: '[' or '{' expected near 'x'" },
		{ "\n\n [1]", "3:2: not a trace: an object with \"tdt\", the schema's version, was expected" },
		{ "{}", "1:1: not a trace: an object with \"tdt\", the schema's version, was expected" },
		{ "{\"tdt\":2}", "1:1: schema version 2: this program knows version 1" },
		{ "{\"tdt\":1.0}", "1:1: not a trace: an object with \"tdt\", the schema's version, was expected" },
		{ "{\"tdt\":1,\n\"tdt\":1}", "2:5: duplicate object key near '\"tdt\"'" },
		{ "{\"tdt\":1,", "1:9: string or '}' expected near end of file" },
		{ "{\"tdt\":1}", "1:1: task: not an object" },
		{ "{\"tdt\":1,\"task\":[]}", "1:1: task: not an object" },
		{ "{\"tdt\":1,\"task\":{}}", "1:1: task.id: is missing" },
		{ "{\"tdt\":1,\"task\":{\"id\":-1}}", "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":1.5}}", "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":null}}", "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":\"18446744073709551616\"}}",
		  "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":\"-1\"}}", "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":\"\"}}", "1:1: task.id: not a whole number from 0 to 2^64 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":99999999999999999999}}",
		  "1:43: too big integer near '99999999999999999999'" },
		{ "{\"tdt\":1,\"task\":{\"id\":1}}", "1:1: task.state: is missing" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"x\"}}",
		  "1:1: task.state: not a word that this version knows" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":0}}",
		  "1:1: task.state: not a word that this version knows" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"state\":\"ready\",\"line\":4294967296}}",
		  "1:1: task.line: not a whole number from 0 to 2^32 - 1" },
		{ "{\"tdt\":1,\"task\":{\"id\":1,\"name\":1}}", "1:1: task.name: not a string" },
		{ TASK "1}", "1:1: nodes: not an array with the task as its first node" },
		{ TASK "[]}", "1:1: nodes: not an array with the task as its first node" },
		{ TASK "[1]}", "1:1: nodes[0].id: is missing" },
		{ TASK "[{\"id\":1,\"kind\":\"task\"}]}", "1:1: nodes[0].id: not the node's index" },
		{ TASK "[{\"id\":0,\"kind\":\"frame\"}]}",
		  "1:1: nodes[0].kind: the first node and no other is the task" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"task\"}]}",
		  "1:1: nodes[1].kind: the first node and no other is the task" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\"}]}", "1:1: nodes[1].parent: is missing" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":1}]}",
		  "1:1: nodes[1].parent: not the id of a node before this one" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":2},"
		  "{\"id\":2,\"kind\":\"frame\",\"parent\":1}]}",
		  "1:1: nodes[1].parent: not the id of a node before this one" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":-1}]}",
		  "1:1: nodes[1].parent: not a whole number from 0 to 2^64 - 1" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"cut\",\"parent\":0}]}", "1:1: nodes[1].cut: is missing" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"cut\",\"parent\":0,\"cut\":\"x\"}]}",
		  "1:1: nodes[1].cut: not a word that this version knows" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":1}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":\"0x\"}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":\"0x0x1\"}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"pc\":\"0x10000000000000000\"}]}",
		  "1:1: nodes[1].pc: not a string of a 64-bit hexadecimal number as \"0x1f\"" },
		{ TASK "[" ROOT ",{\"id\":1,\"kind\":\"frame\",\"parent\":0,\"inlined\":1}]}",
		  "1:1: nodes[1].inlined: not true or false" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		FILE *file = fmemopen((void *)(uintptr_t)cases[i].text, strlen(cases[i].text), "r");
		struct reader reader = { .file = file };
		struct tdt_trace *trace;
		char message[600];

		ck_assert_int_eq(reader_next(&reader, &trace), -1);
		ck_assert_ptr_null(trace);
		snprintf(message, sizeof(message), "%lu:%lu: %s", reader.line, reader.column, reader.message);
		ck_assert_str_eq(message, cases[i].message);
		fclose(file);
	}
}
END_TEST

START_TEST(json_of_a_later_version_may_have_more_members)
{
	struct tdt_trace *trace = read_back("{\"tdt\":1,\"new\":{},\"task\":{\"id\":1,\"state\":\"ready\",\"new\":[1]},"
					    "\"nodes\":[{\"id\":0,\"kind\":\"task\",\"new\":null}]}");

	ck_assert_ptr_nonnull(trace);
	tdt_trace_free(trace);
}
END_TEST

START_TEST(objects_follow_one_another)
{
	static const char text[] = " \n" TASK "[" ROOT "]}" TASK "[" ROOT "]}\t\r\n" TASK "[" ROOT "]}\n\n";
	FILE *file = fmemopen((void *)(uintptr_t)text, sizeof(text) - 1, "r");
	struct reader reader = { .file = file };
	struct tdt_trace *trace;

	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(reader_next(&reader, &trace), 1);
		tdt_trace_free(trace);
	}
	ck_assert_int_eq(reader_next(&reader, &trace), 0);
	ck_assert_int_eq(reader_next(&reader, &trace), 0);
	ck_assert_ptr_null(trace);
	fclose(file);
}
END_TEST

static uint32_t random_state;

static uint32_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 17;
	random_state ^= random_state << 5;
	return random_state;
}

static void mutate(char *text, size_t *n)
{
	static const char bits[] = "{}[]\",:0123456789-.ex\\ \n\x80\xff";
	size_t at = next_random() % *n, length = next_random() % 8;

	switch (next_random() % 5) {
	case 0:
		text[at] = bits[next_random() % (sizeof(bits) - 1)];
		break;
	case 1:
		text[at] ^= (char)(1 << next_random() % 8);
		break;
	case 2: /* cut */
		*n = at + 1;
		break;
	case 3: /* take some out */
		length = length < *n - at ? length : *n - at - 1;
		memmove(text + at, text + at + length, *n - at - length);
		*n -= length;
		break;
	default: /* write one part over another */
		length = length * 16 < *n - at ? length * 16 : *n - at;
		memmove(text + at, text + next_random() % (*n - length + 1), length);
	}
}

START_TEST(damaged_json_never_does_damage)
{
	static const char *const seed_text = "TDT_TEST_SEED";
	const char *seed = getenv(seed_text);
	int read = 0;

	random_state = seed != NULL ? (uint32_t)strtoul(seed, NULL, 0) | 1 : 0x7d7;
	printf("# %s=%u\n", seed_text, random_state);
	for (int i = 0; i < 2000; i++) {
		char text[sizeof(everything_json)];
		size_t n = sizeof(text) - 1;
		struct reader reader = { 0 };
		struct tdt_trace *trace;
		int result;

		memcpy(text, everything_json, sizeof(text));
		for (uint32_t times = 1 + next_random() % 3; times > 0; times--)
			mutate(text, &n);
		reader.file = fmemopen(text, n, "r");
		while ((result = reader_next(&reader, &trace)) > 0) {
			for (int form = TDT_PRINT_TEXT; form <= TDT_PRINT_FOLDED; form++)
				free(print(trace, OPTIONS(.format = (enum tdt_print_format)form)));
			tdt_trace_free(trace);
			read++;
		}
		ck_assert_ptr_null(trace);
		ck_assert(result == 0 || reader.message[0] != '\0');
		fclose(reader.file);
	}
	ck_assert_int_gt(read, 10); /* some still were traces */
	ck_assert_int_lt(read, 1990);
}
END_TEST

/* ---- Size ---- */

START_TEST(a_stack_of_20000_frames_is_printed_in_every_form)
{
	struct tdt_trace *trace = new_trace(1), *again;
	const struct tdt_node *node = NULL;
	char *text, *json;

	for (uint32_t i = 1; i <= 20000; i++)
		node = add(trace, node, (struct tdt_frame)FRAME(.function = "f", .file = "/x.c", .line = i),
			   i == 20000);
	text = print(trace, OPTIONS(UTF8));
	ck_assert_ptr_nonnull(strstr(text, "└╼ f at /x.c:100\n"));
	ck_assert_ptr_nonnull(strstr(text, "  [101] f at /x.c:101\n"));
	ck_assert_ptr_nonnull(strstr(text, "  [20000] f at /x.c:20000\n"));
	ck_assert_uint_lt(strlen(text), 20000 * 500);
	free(text);
	text = print(trace, OPTIONS(FOLDED));
	ck_assert_uint_eq(strlen(text), 6 + 2 * 20000 + 3);
	free(text);
	json = print(trace, OPTIONS(JSON));
	again = read_back(json);
	expect_trace(again, OPTIONS(JSON), json);
	free(json);
	tdt_trace_free(again);
	tdt_trace_free(trace);
}
END_TEST

/* Comparing each with each takes minutes, and so runs into the test's timeout. */
START_TEST(a_hundred_thousand_siblings_are_printed)
{
	struct tdt_trace *trace = new_trace(1);
	char *text;

	for (uint32_t i = 0; i < 100000; i++) {
		const struct tdt_node *node = add(trace, NULL, (struct tdt_frame)FRAME(.pc = i + 1), 0);

		add(trace, node, (struct tdt_frame)FRAME(.function = "f"), 1);
	}
	for (uint64_t i = 0; i < 100000; i++)
		add(trace, NULL, (struct tdt_frame)FRAME(.pc = i << 20, .function = "same"), 1);
	text = print(trace, OPTIONS(UTF8));
	ck_assert_ptr_nonnull(strstr(text, "╼ same ×100000\n"));
	ck_assert_ptr_nonnull(strstr(text, "╼ 0x186a0\n └╼ f\n"));
	free(text);
	tdt_trace_free(trace);
}
END_TEST

/* ---- What may go wrong ---- */

START_TEST(wrong_options_are_refused)
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
		{ .size = sizeof(bad[0]), .reserved = 1 },
	};
	struct tdt_trace *trace = design();
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		errno = 0;
		ck_assert_int_eq(tdt_trace_print_with(trace, file, &bad[i]), -EINVAL);
		ck_assert_int_eq(errno, EINVAL);
	}
	ck_assert_int_eq(tdt_trace_print_with(NULL, file, NULL), -EINVAL);
	ck_assert_int_eq(tdt_trace_print_with(trace, NULL, NULL), -EINVAL);
	ck_assert_int_eq(tdt_trace_print(NULL, NULL), -EINVAL);
	large.more[3] = 1;
	errno = 0;
	ck_assert_int_eq(tdt_trace_print_with(trace, file, &large.options), -E2BIG);
	ck_assert_int_eq(errno, E2BIG);
	fclose(file);
	ck_assert_uint_eq(size, 0);
	free(text);
	large.more[3] = 0;
	expect_trace(trace, &large.options, design_ascii);
	large.options.size = offsetof(struct tdt_print_options, max_depth);
	large.options.max_depth = 1;
	expect_trace(trace, &large.options, design_ascii);
	tdt_trace_free(trace);
}
END_TEST

START_TEST(a_full_disk_is_told)
{
	struct tdt_trace *trace = design();

	for (int form = TDT_PRINT_TEXT; form <= TDT_PRINT_FOLDED; form++) {
		for (int buffered = 0; buffered <= 1; buffered++) {
			FILE *file = fopen("/dev/full", "w");

			setvbuf(file, NULL, buffered ? _IOFBF : _IONBF, BUFSIZ);
			errno = 0;
			ck_assert_int_eq(
				tdt_trace_print_with(trace, file, OPTIONS(.format = (enum tdt_print_format)form)),
				-ENOSPC);
			ck_assert_int_eq(errno, ENOSPC);
			fclose(file);
		}
	}
	tdt_trace_free(trace);
}
END_TEST

START_TEST(a_reader_that_went_away_is_told)
{
	struct tdt_trace *trace = design();
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
	tdt_trace_free(trace);
}
END_TEST

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

START_TEST(traces_of_several_threads_come_out_in_one_piece)
{
	struct tdt_trace *trace = design();
	/* Not open_memstream(): the thread sanitizer does not see the lock of a FILE, but does see its buffer grow. */
	struct shared shared = { .trace = trace, .file = tmpfile() };
	char text[sizeof(design_ascii)];
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, print_often, &shared), 0);
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
	tdt_trace_free(trace);
}
END_TEST

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
	return err == -ENOMEM && strstr(printing->text, "]}\n") != NULL ? -EPROTO : err; /* must not look whole */
}

START_TEST(every_allocation_may_fail)
{
	struct printing printing = { .trace = design() };
	char buffer[512];

	printing.file = fmemopen(printing.text, sizeof(printing.text), "w");
	setvbuf(printing.file, buffer, _IOFBF, sizeof(buffer));
	for (int form = TDT_PRINT_TEXT; form <= TDT_PRINT_FOLDED; form++) {
		printing.options = *OPTIONS(.format = (enum tdt_print_format)form);
		no_memory_each(print_once, &printing, form == TDT_PRINT_JSON ? 100 : 5);
	}
	fclose(printing.file);
	tdt_trace_free(printing.trace);
}
END_TEST

static int read_once(void *argument)
{
	struct reader reader = { .file = argument };
	struct tdt_trace *trace;
	int result;

	rewind(argument);
	result = reader_next(&reader, &trace);
	tdt_trace_free(trace);
	/* jansson has words for it, but no code */
	return result == 1 ? 0 : result == -1 && reader.message[0] != '\0' && trace == NULL ? -ENOMEM : -EPROTO;
}

START_TEST(every_allocation_may_fail_while_reading)
{
	FILE *file = fmemopen((void *)(uintptr_t)everything_json, sizeof(everything_json) - 1, "r");
	char buffer[512];

	setvbuf(file, buffer, _IOFBF, sizeof(buffer));
	no_memory_each(read_once, file, 50);
	fclose(file);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("print");
	TCase *text = tcase_create("text"), *folded = tcase_create("folded"), *json = tcase_create("json"),
	      *size = tcase_create("size"), *errors = tcase_create("errors");
	SRunner *runner;
	int failed;

	tcase_add_test(text, the_design_s_example);
	tcase_add_test(text, lines_are_utf8_where_the_locale_is);
	tcase_add_test(text, print_is_print_with_defaults);
	tcase_add_test(text, the_task_s_line_tells_what_is_known);
	tcase_add_test(text, the_decimal_point_is_a_point_in_every_locale);
	tcase_add_test(text, a_frame_tells_what_is_known);
	tcase_add_test(text, paths_are_shown_below_the_directory_they_were_compiled_in);
	tcase_add_test(text, outermost_functions_stand_at_the_margin);
	tcase_add_test(text, leaves_are_counted_where_it_is_not_plain);
	tcase_add_test(text, repeats_are_drawn_once);
	tcase_add_test(text, what_differs_anywhere_below_is_no_repeat);
	tcase_add_test(text, plumbing_that_only_leads_on_is_left_out);
	tcase_add_test(text, plumbing_that_branches_is_shown);
	tcase_add_test(text, a_leaf_in_plumbing_counts_for_who_called_it);
	tcase_add_test(text, a_task_of_nothing_but_plumbing_shows_its_leaf);
	tcase_add_test(text, hiding_plumbing_joins_what_then_reads_the_same);
	tcase_add_test(text, depth_is_limited_and_the_rest_counted);
	tcase_add_test(text, cuts_are_told_in_words);
	tcase_add_test(text, colors_when_asked_for);
	tcase_add_test(text, colors_by_themselves_only_on_a_terminal_that_can);
	tcase_add_test(text, nothing_in_a_name_reaches_a_terminal_as_it_is);
	suite_add_tcase(suite, text);
	tcase_add_test(folded, folded_has_a_line_for_each_place_that_leaves_wait_in);
	tcase_add_test(folded, folded_names_hold_no_separator);
	suite_add_tcase(suite, folded);
	tcase_add_test(json, json_tells_all_and_reads_back_the_same);
	tcase_add_test(json, json_has_the_plumbing_too);
	tcase_add_test(json, every_word_of_the_json_reads_back);
	tcase_add_test(json, json_is_ascii_and_valid_whatever_a_name_holds);
	tcase_add_test(json, json_that_is_no_trace_is_refused_with_the_place_and_reason);
	tcase_add_test(json, json_of_a_later_version_may_have_more_members);
	tcase_add_test(json, objects_follow_one_another);
	tcase_add_test(json, damaged_json_never_does_damage);
	suite_add_tcase(suite, json);
	tcase_add_test(size, a_stack_of_20000_frames_is_printed_in_every_form);
	tcase_add_test(size, a_hundred_thousand_siblings_are_printed);
	suite_add_tcase(suite, size);
	tcase_add_test(errors, wrong_options_are_refused);
	tcase_add_test(errors, a_full_disk_is_told);
	tcase_add_test(errors, a_reader_that_went_away_is_told);
	tcase_add_test(errors, traces_of_several_threads_come_out_in_one_piece);
	tcase_add_test(errors, every_allocation_may_fail);
	tcase_add_test(errors, every_allocation_may_fail_while_reading);
	suite_add_tcase(suite, errors);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
