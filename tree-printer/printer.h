/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_PRINTER_PRINTER_H
#define TDT_TREE_PRINTER_PRINTER_H

/*
 * What the forms share.  A trace is printed in two steps: view.c finds out which frames are shown, then text.c or
 * folded.c writes them; json.c needs no view, it writes all.  Everything is linear in the number of nodes, and nothing
 * recurses over depth.  dump*.c print a snapshot of many tasks, by the same means.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tdt/dump.h>

#include "base/index.h"

/* Whether `out` is a terminal whose user wants colours: TERM says it can, NO_COLOR doesn't forbid it. */
bool tdt__wants_color(FILE *out);

/*
 * Text that grows.  The first failure to allocate sticks, and later additions do nothing: it is looked at once, in the
 * end.
 */
struct tdt__string {
	char *bytes;
	size_t n;
	size_t room;
	bool failed;
};

void tdt__string_add(struct tdt__string *string, const void *bytes, size_t n);
void tdt__string_puts(struct tdt__string *string, const char *text);
void tdt__string_printf(struct tdt__string *string, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tdt__string_free(struct tdt__string *string);

/*
 * Add `text`, which may come from anywhere, so that it can't do anything to a terminal: what is no valid UTF-8, a
 * control character, or one that changes the direction of writing comes out escaped as in C, and so does a backslash,
 * `quote` (0: none), and with !utf8 whatever is not ASCII.
 */
void tdt__string_escape(struct tdt__string *string, const char *text, bool utf8, char quote);

/* The length of the UTF-8 character at `text`, 0 if it is invalid, and in `*code` its code point. */
size_t tdt__utf8_decode(const char *text, uint32_t *code);

/* Where it all goes, in large pieces, since `file` may be unbuffered as stderr is.  The first error sticks. */
struct tdt__out {
	FILE *file;
	int error; /* 0 or a negative errno */
	size_t used;
	char buffer[4096];
};

void tdt__out_add(struct tdt__out *out, const void *bytes, size_t n);
void tdt__out_flush(struct tdt__out *out);

/* All nodes of the tree, by id: an array of `*n` for the caller to free.  NULL: no memory. */
const struct tdt_node **tdt__nodes_by_id(const struct tdt_node *root, uint32_t *n);

/* A line to be shown.  Rows are in depth-first order; row 0 is the task. */
struct tdt__row {
	const struct tdt_node *node; /* NULL: stands for what is below the depth asked for */
	uint32_t parent;             /* a row */
	uint32_t depth;              /* 1: a child of the task */
	uint64_t frames;             /* that a row without a node stands for */
	uint64_t leaves;             /* that wait here, or in plumbing below that is not shown */
};

struct tdt__view {
	struct tdt__row *row;
	uint32_t n;
};

/* What `options` want to be seen of a tree.  Returns 0 or -ENOMEM.  The view is to be freed with free(view->row). */
int tdt__view_make(struct tdt__view *view, const struct tdt_node *root, const struct tdt_print_options *options);

/* How a frame is called: by function, address or reason of a cut, as options say.  Escaped. */
void tdt__frame_name(struct tdt__string *string, const struct tdt_frame *frame,
		     const struct tdt_print_options *options);

/* What the text form puts behind the name: where that is.  May add nothing. */
void tdt__frame_place(struct tdt__string *string, const struct tdt_frame *frame,
		      const struct tdt_print_options *options);

/*
 * How frames read: name and place.  A text is written once and has a number, the same for all frames that read the same.
 * Frames must stay as they are meanwhile.  To begin with: the options, and zeros.
 */
struct tdt__frames {
	const struct tdt_print_options *options;
	struct tdt__string string; /* the texts */
	struct tdt__frame_text *text;
	struct tdt__frame_seen *seen;
	uint32_t texts;
	uint32_t n_seen;
	size_t room; /* of each of the two arrays, and of its index */
	struct tdt__index by_text;
	struct tdt__index by_frame;
};

/* The number of a frame's text.  UINT32_MAX: no memory. */
uint32_t tdt__frames_find(struct tdt__frames *frames, const struct tdt_frame *frame);
void tdt__frames_write(struct tdt__out *out, const struct tdt__frames *frames, uint32_t number);
void tdt__frames_fini(struct tdt__frames *frames);

/* Sequences for a terminal, added where the options want colours. */
#define TDT__BOLD "\033[1m"
#define TDT__DIM "\033[2m"
#define TDT__RED "\033[31m"
#define TDT__GREEN "\033[32m"
#define TDT__YELLOW "\033[33m"
#define TDT__CYAN "\033[36m"
#define TDT__PLAIN "\033[0m"
void tdt__color(struct tdt__string *string, const char *sequence, const struct tdt_print_options *options);

/* "1 leaf", "2 leaves"; and " 1.204 s", with the space. */
void tdt__count_leaves(struct tdt__string *string, uint64_t n);
void tdt__duration(struct tdt__string *string, uint64_t ns);

/* What tasks of a snapshot are called, by their ids: names.c.  NULL stands for no names at all. */
struct tdt__names;

/* `5 "a"`: how task `id` is called.  Escaped. */
void tdt__task_name(struct tdt__string *string, uint64_t id, const char *name, const struct tdt_print_options *options);

/* The parts of a task's line that groups of tasks have, too; each starts with a space, or with a comma and one. */
void tdt__task_state(struct tdt__string *string, enum tdt_task_state state, const struct tdt_print_options *options);
void tdt__task_syscall(struct tdt__string *string, const char *syscall, const struct tdt_print_options *options);
void tdt__task_answer(struct tdt__string *string, const struct tdt_trace_info *info, enum tdt_answer answer);
void tdt__task_place(struct tdt__string *string, const struct tdt_trace_info *info,
		     const struct tdt_print_options *options);
void tdt__task_parent(struct tdt__string *string, const struct tdt_trace_info *info);

/* The task's line.  What a trace says by itself is TDT_ANSWER_FRESH, or has its age. */
void tdt__task_line(struct tdt__string *string, const struct tdt_trace_info *info, enum tdt_answer answer,
		    const struct tdt_print_options *options);

/* Below that, if some of its leaves may be over.  May add nothing. */
void tdt__unsure_line(struct tdt__string *string, const struct tdt_trace_info *info);

/*
 * What tasks wait for, below their line.  Only what the tree doesn't say: who is waited for, and which mutex or channel
 * of several it is.
 */
enum {
	TDT__WAITS_SHOWN = 8 /* lines; others are counted */
};
bool tdt__wait_tells(const struct tdt_wait *wait);
void tdt__wait_for(struct tdt__string *string, const struct tdt_wait *wait, uint64_t self,
		   const struct tdt__names *names, const struct tdt_print_options *options);
void tdt__wait_lines(struct tdt__string *string, const struct tdt_trace_info *info, const struct tdt__names *names,
		     const struct tdt_print_options *options);

/*
 * Read the caller's options, and replace AUTO by what it is for `out`.  Returns 0, -EINVAL or -E2BIG.  May change
 * errno.
 */
int tdt__print_options_read(struct tdt_print_options *options, const struct tdt_print_options *theirs, FILE *out);

/* Write what is left, and flush the stream.  Returns the first error of writing, or else `err`. */
int tdt__out_end(struct tdt__out *out, int err);

/*
 * The forms.  `options->utf8` and `color` are YES or NO here.  They return 0 or -ENOMEM; errors in writing are told by
 * `out`.
 */
int tdt__print_text(struct tdt__out *out, const struct tdt_trace *trace, const struct tdt_node *root,
		    const struct tdt_print_options *options);
int tdt__print_json(struct tdt__out *out, const struct tdt_trace *trace, const struct tdt_node *root);
int tdt__print_folded(struct tdt__out *out, const struct tdt_trace *trace, const struct tdt_node *root,
		      const struct tdt_print_options *options);

/* The tree alone, behind `head` (may be NULL).  With -ENOMEM some of it may have been written. */
int tdt__print_tree(struct tdt__out *out, const struct tdt__string *head, const struct tdt_node *root,
		    struct tdt__frames *frames);

/* The stacks of a tree that `tasks` tasks have, behind the first frame `task`, which is escaped. */
int tdt__print_stacks(struct tdt__out *out, const struct tdt__string *task, uint64_t tasks, const struct tdt_node *root,
		      const struct tdt_print_options *options);

/* Parts of the JSON: text as it is; a number, or a string of digits where readers would lose some; and values. */
void tdt__json_text(struct tdt__out *out, const char *text);
void tdt__json_u64(struct tdt__out *out, uint64_t value);
int tdt__json_task(struct tdt__out *out, const struct tdt_trace_info *info);
int tdt__json_nodes(struct tdt__out *out, const struct tdt_node *root);

#endif
