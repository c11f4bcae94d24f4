// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The tree of the text form.  The lines that stand above it are task_line.c's.
 *
 * A sibling that reads the same as one before it, with all below it, is drawn once.  To find them each subtree gets a
 * number, its *shape*, the same for all that read the same: a table from what a subtree reads like (its line, then the
 * shapes below it) to numbers, filled from the bottom up.  Comparing two subtrees is then comparing two numbers.
 */

#include <config.h>

#include "printer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	NONE = 0,    /* no row: the task is nobody's child */
	LEVELS = 100 /* indented; what is deeper has its level told by a number */
};

/* A line, and its place among those that are drawn. */
struct line {
	uint32_t first_child;
	uint32_t next_sibling;
	uint32_t times; /* it stands for so many siblings */
	uint32_t shape;
};

/* What subtrees of a shape read like. */
struct shape {
	size_t at; /* in the text: the line, then, for the comparison only, the children */
	size_t line_size;
	size_t size;
	uint32_t hash;
	uint32_t seen_under; /* the row whose children were last compared, and the first child of this shape there */
	uint32_t seen;
};

struct text {
	const struct tdt_print_options *options;
	struct tdt__view view;
	struct line *line;   /* of each row */
	struct shape *shape; /* at most one for each row */
	uint32_t shapes;
	uint32_t *slot; /* a hash table: a shape + 1, or 0 */
	size_t slots;   /* a power of two, more than shapes */
	struct tdt__string string;
};

static void place(struct tdt__string *string, const struct tdt_frame *frame, const struct tdt_print_options *options)
{
	size_t before = string->n, start;

	tdt__color(string, TDT__DIM, options);
	start = string->n;
	tdt__frame_place(string, frame, options);
	if (string->n == start)
		string->n = before;
	else
		tdt__color(string, TDT__PLAIN, options);
}

static void frame_line(struct text *text, const struct tdt__row *row, bool has_children)
{
	const struct tdt_frame *frame = tdt_node_frame(row->node);
	struct tdt__string *string = &text->string;

	tdt__color(string, frame->kind == TDT_NODE_CUT ? TDT__RED : TDT__BOLD, text->options);
	tdt__frame_name(string, frame, text->options);
	tdt__color(string, TDT__PLAIN, text->options);
	place(string, frame, text->options);
	if (frame->guessed)
		tdt__string_puts(string, " (callers may be missing)");
	if (row->leaves > 1 || (row->leaves == 1 && has_children)) {
		tdt__string_puts(string, " (");
		tdt__count_leaves(string, row->leaves);
		tdt__string_puts(string, ")");
	}
}

static void below_line(struct tdt__string *string, const struct tdt__row *row)
{
	tdt__string_printf(string, "... %" PRIu64 " frame%s", row->frames, row->frames == 1 ? "" : "s");
	if (row->leaves != 0) {
		tdt__string_puts(string, " and ");
		tdt__count_leaves(string, row->leaves);
	}
	tdt__string_puts(string, " below");
}

/* Leave out the children of `row` that read the same as one before. */
static void join_repeats(struct text *text, uint32_t row)
{
	uint32_t *link = &text->line[row].first_child;

	while (*link != NONE) {
		struct line *line = &text->line[*link];
		struct shape *shape = &text->shape[line->shape];

		if (shape->seen != NONE && shape->seen_under == row) {
			text->line[shape->seen].times++;
			*link = line->next_sibling;
		} else {
			shape->seen_under = row;
			shape->seen = *link;
			link = &line->next_sibling;
		}
	}
}

/* FNV-1a */
static uint32_t hash_bytes(const char *bytes, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return (uint32_t)(hash ^ hash >> 32);
}

/* The shape of what stands at the end of the text from `at` on; it is taken off again if there was such a one. */
static uint32_t find_shape(struct text *text, size_t at, size_t line_size)
{
	const char *bytes = text->string.bytes;
	size_t size = text->string.n - at;
	uint32_t hash = hash_bytes(bytes + at, size);
	size_t slot = hash & (text->slots - 1);

	for (; text->slot[slot] != 0; slot = (slot + 1) & (text->slots - 1)) {
		const struct shape *shape = &text->shape[text->slot[slot] - 1];

		if (shape->hash == hash && shape->size == size && memcmp(bytes + shape->at, bytes + at, size) == 0) {
			text->string.n = at;
			return text->slot[slot] - 1;
		}
	}
	text->shape[text->shapes] = (struct shape){ .at = at, .line_size = line_size, .size = size, .hash = hash };
	text->slot[slot] = ++text->shapes;
	return text->shapes - 1;
}

/* Write the line of `row`, whose children are done, and find its shape. */
static void do_row(struct text *text, uint32_t row)
{
	struct line *line = &text->line[row];
	size_t at = text->string.n, line_size;

	join_repeats(text, row);
	if (text->view.row[row].node == NULL)
		below_line(&text->string, &text->view.row[row]);
	else
		frame_line(text, &text->view.row[row], line->first_child != NONE);
	line_size = text->string.n - at;
	tdt__string_add(&text->string, "", 1); /* where the line ends: no line has a NUL */
	for (uint32_t child = line->first_child; child != NONE; child = text->line[child].next_sibling) {
		tdt__string_add(&text->string, &text->line[child].shape, sizeof(line->shape));
		tdt__string_add(&text->string, &text->line[child].times, sizeof(line->times));
	}
	if (!text->string.failed)
		line->shape = find_shape(text, at, line_size);
}

/* From the last row to the first: children before their parents. */
static void do_rows(struct text *text)
{
	for (uint32_t row = text->view.n; row-- > 1 && !text->string.failed;) {
		struct line *parent = &text->line[text->view.row[row].parent];

		do_row(text, row);
		text->line[row].times = 1;
		text->line[row].next_sibling = parent->first_child;
		parent->first_child = row;
	}
	if (!text->string.failed)
		join_repeats(text, 0);
}

struct glyphs {
	const char *root, *child, *last_child, *line, *blank, *times;
};

static const struct glyphs utf8_glyphs = { "╼ ", "├╼ ", "└╼ ", "│  ", "   ", " ×" };
static const struct glyphs ascii_glyphs = { "- ", "|- ", "`- ", "|  ", "   ", " x" };

/* What stands before the lines of each level, while the tree is walked. */
struct indentation {
	char bytes[LEVELS * sizeof("│  ")];
	size_t size[LEVELS + 2];
};

static void indent(struct tdt__string *string, struct indentation *indentation, const struct glyphs *glyphs,
		   uint32_t depth, bool last)
{
	const char *more = depth == 1 ? " " : last ? glyphs->blank : glyphs->line;

	if (depth > LEVELS) {
		tdt__string_add(string, indentation->bytes, indentation->size[LEVELS + 1]);
		tdt__string_printf(string, "[%" PRIu32 "] ", depth);
		return;
	}
	tdt__string_add(string, indentation->bytes, indentation->size[depth]);
	tdt__string_puts(string, depth == 1 ? glyphs->root : last ? glyphs->last_child : glyphs->child);
	memcpy(indentation->bytes + indentation->size[depth], more, strlen(more));
	indentation->size[depth + 1] = indentation->size[depth] + strlen(more);
}

static void draw_row(struct tdt__out *out, const struct text *text, uint32_t row, struct tdt__string *string,
		     struct indentation *indentation)
{
	const struct glyphs *glyphs = text->options->utf8 == TDT_PRINT_YES ? &utf8_glyphs : &ascii_glyphs;
	const struct line *line = &text->line[row];
	const struct shape *shape = &text->shape[line->shape];

	string->n = 0;
	indent(string, indentation, glyphs, text->view.row[row].depth, line->next_sibling == NONE);
	tdt__string_add(string, text->string.bytes + shape->at, shape->line_size);
	if (line->times > 1)
		tdt__string_printf(string, "%s%" PRIu32, glyphs->times, line->times);
	tdt__string_puts(string, "\n");
	if (!string->failed)
		tdt__out_add(out, string->bytes, string->n);
}

static int draw(struct tdt__out *out, const struct text *text)
{
	struct tdt__string string = { 0 };
	struct indentation indentation = { 0 };
	uint32_t row = text->line[0].first_child;
	int err;

	while (row != NONE && !string.failed && out->error == 0) {
		draw_row(out, text, row, &string, &indentation);
		if (text->line[row].first_child != NONE) {
			row = text->line[row].first_child;
			continue;
		}
		while (row != NONE && text->line[row].next_sibling == NONE)
			row = text->view.row[row].parent;
		row = text->line[row].next_sibling; /* of the task: NONE */
	}
	err = string.failed ? -ENOMEM : 0;
	tdt__string_free(&string);
	return err;
}

static int allocate(struct text *text)
{
	for (text->slots = 16; text->slots / 2 <= text->view.n;)
		text->slots *= 2;
	text->line = calloc(text->view.n, sizeof(*text->line));
	text->shape = calloc(text->view.n, sizeof(*text->shape));
	text->slot = calloc(text->slots, sizeof(*text->slot));
	return text->line == NULL || text->shape == NULL || text->slot == NULL ? -ENOMEM : 0;
}

int tdt__print_tree(struct tdt__out *out, const struct tdt__string *head, const struct tdt_node *root,
		    const struct tdt_print_options *options)
{
	struct text text = { .options = options };
	int err = tdt__view_make(&text.view, root, options);

	if (err != 0)
		return err;
	err = allocate(&text);
	if (err == 0)
		do_rows(&text);
	if (err == 0 && text.string.failed)
		err = -ENOMEM;
	if (err == 0) {
		if (head != NULL)
			tdt__out_add(out, head->bytes, head->n);
		err = draw(out, &text);
	}
	tdt__string_free(&text.string);
	free(text.slot);
	free(text.shape);
	free(text.line);
	free(text.view.row);
	return err;
}

int tdt__print_text(struct tdt__out *out, const struct tdt_trace *trace, const struct tdt_node *root,
		    const struct tdt_print_options *options)
{
	const struct tdt_trace_info *info = tdt_trace_info(trace);
	struct tdt__string head = { 0 };
	int err;

	tdt__task_line(&head, info, TDT_ANSWER_FRESH, options);
	tdt__wait_lines(&head, info, NULL, options);
	err = head.failed ? -ENOMEM : tdt__print_tree(out, &head, root, options);
	tdt__string_free(&head);
	return err;
}
