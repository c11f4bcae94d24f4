/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TESTS_PRINTED_H
#define TDT_TESTS_PRINTED_H

/* Traces made to be printed, and the very text that is expected of them. */

#include <stdint.h>

#include <tdt/print.h>

/* What a leaf waits for. */
#define WAIT(...) { .size = sizeof(struct tdt_wait), __VA_ARGS__ }

#define OPTIONS(...)                                                                               \
	(&(struct tdt_print_options){ .size = sizeof(struct tdt_print_options), __VA_ARGS__ })
#define UTF8 .utf8 = TDT_PRINT_YES
#define ASCII .utf8 = TDT_PRINT_NO
#define FOLDED ASCII, .format = TDT_PRINT_FOLDED
#define JSON .format = TDT_PRINT_JSON

#define FRAME(...) { .kind = TDT_NODE_FRAME, __VA_ARGS__ }

struct tdt_trace *new_trace(uint32_t leaves);
const struct tdt_node *add(struct tdt_trace *trace, const struct tdt_node *parent,
			   struct tdt_frame frame, uint32_t leaves);

/*
 * A tree from a line of text: `name:line`, then `@module`, then `*` for each leaf, then its
 * children in parentheses.  All lie in /b/x.c of a unit compiled in /b.
 */
struct tdt_trace *grow(const char *text);

/* What is printed, for the caller to free. */
char *print(const struct tdt_trace *trace, const struct tdt_print_options *options);

void expect_trace(const struct tdt_trace *trace, const struct tdt_print_options *options,
		  const char *expected);

/* The same without the task's line. */
void expect_tree(const char *tree, const struct tdt_print_options *options, const char *expected);

/* The example that the text form was designed by. */
struct tdt_trace *design(void);

static const char design_ascii[] =
	"task 7 \"bar\" pending 1.204 s, 2 leaves, spawned at demo/taskdump.c:88\n"
	"- foo_poll at demo/taskdump.c:18:11\n"
	" `- bar_poll at demo/taskdump.c:22:5\n"
	"    `- tdt_join_all at src/future/combine.c:58:9\n"
	"       |- fiz_poll at demo/taskdump.c:26:15\n"
	"       |  `- pending_poll at demo/taskdump.c:14:8\n"
	"       `- buz_poll at demo/taskdump.c:30:11\n"
	"          `- baz_poll at demo/taskdump.c:34:15\n"
	"             `- pending_poll at demo/taskdump.c:14:8\n";

#endif
