// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Traces to be printed, and a look at what is. */

#include <config.h>

#include "lib/printed.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tdt_trace *new_trace(uint32_t leaves)
{
	struct tdt_task_info info = { .size = sizeof(info), .id = 1, .leaves = leaves };
	struct tdt_trace *trace = tdt_trace_new(&info);

	ck_assert_ptr_nonnull(trace);
	return trace;
}

const struct tdt_node *add(struct tdt_trace *trace, const struct tdt_node *parent,
			   struct tdt_frame frame, uint32_t leaves)
{
	const struct tdt_node *node;

	frame.size = sizeof(frame);
	node = tdt_trace_add(trace, parent, &frame, leaves);
	ck_assert_ptr_nonnull(node);
	return node;
}

struct tdt_trace *grow(const char *text)
{
	struct tdt_trace *trace = new_trace(1);
	const struct tdt_node *parent = tdt_trace_root(trace), *node = NULL;
	char name[64], module[64];

	for (int n; *text != '\0'; text += n) {
		struct tdt_frame frame = { .kind = TDT_NODE_FRAME,
					   .function = name,
					   .file = "/b/x.c",
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

char *print(const struct tdt_trace *trace, const struct tdt_print_options *options)
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

void expect_trace(const struct tdt_trace *trace, const struct tdt_print_options *options,
		  const char *expected)
{
	char *text = print(trace, options);

	ck_assert_str_eq(text, expected);
	free(text);
}

void expect_tree(const char *tree, const struct tdt_print_options *options, const char *expected)
{
	struct tdt_trace *trace = grow(tree);
	char *text = print(trace, options);

	ck_assert_str_eq(options->format == TDT_PRINT_TEXT ? strchr(text, '\n') + 1 : text,
			 expected);
	free(text);
	tdt_trace_free(trace);
}

#define HERE(name, at, of_line, of_column)                                                         \
	((struct tdt_frame){ .kind = TDT_NODE_FRAME,                                               \
			     .function = name,                                                     \
			     .file = at,                                                           \
			     .directory = "/home/me/tdt",                                          \
			     .line = of_line,                                                      \
			     .column = of_column,                                                  \
			     .module = "/home/me/tdt/taskdump" })

struct tdt_trace *design(void)
{
	struct tdt_task_info info = { .size = sizeof(info),
				       .id = 7,
				       .name = "bar",
				       .file = "demo/taskdump.c",
				       .line = 88,
				       .leaves = 2,
				       .state_ns = 1204345678 };
	struct tdt_trace *trace = tdt_trace_new(&info);
	const struct tdt_node *node, *join;

	node = add(trace, NULL, HERE("foo_poll", "/home/me/tdt/demo/taskdump.c", 18, 11), 0);
	node = add(trace, node, HERE("bar_poll", "/home/me/tdt/demo/taskdump.c", 22, 5), 0);
	join =
	    add(trace, node, HERE("tdt_join_all", "/home/me/tdt/src/future/combine.c", 58, 9), 0);
	node = add(trace, join, HERE("fiz_poll", "/home/me/tdt/demo/taskdump.c", 26, 15), 0);
	add(trace, node, HERE("pending_poll", "/home/me/tdt/demo/taskdump.c", 14, 8), 1);
	node = add(trace, join, HERE("buz_poll", "/home/me/tdt/demo/taskdump.c", 30, 11), 0);
	node = add(trace, node, HERE("baz_poll", "/home/me/tdt/demo/taskdump.c", 34, 15), 0);
	add(trace, node, HERE("pending_poll", "/home/me/tdt/demo/taskdump.c", 14, 8), 1);
	return trace;
}
