// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The text form: the task's line, then its tree.
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

#define BOLD "\033[1m"
#define DIM "\033[2m"
#define RED "\033[31m"
#define GREEN "\033[32m"
#define YELLOW "\033[33m"
#define CYAN "\033[36m"
#define PLAIN "\033[0m"

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

static void count_leaves(struct tdt__string *string, uint64_t n)
{
	tdt__string_printf(string, "%" PRIu64 " lea%s", n, n == 1 ? "f" : "ves");
}

static void color(struct tdt__string *string, const char *sequence, const struct tdt_print_options *options)
{
	if (options->color == TDT_PRINT_YES)
		tdt__string_puts(string, sequence);
}

/* Four digits and a unit.  By integers: a locale may have another decimal point. */
static void duration(struct tdt__string *string, uint64_t ns)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	uint64_t unit = 1, whole, rest;
	const char *point = ".";
	int i = 0;

	while (i < 3 && ns / unit >= 1000) {
		unit *= 1000;
		i++;
	}
	whole = ns / unit;
	rest = ns % unit;
	tdt__string_printf(string, " %" PRIu64, whole);
	for (uint64_t limit = 1000; unit > 1 && whole < limit; limit /= 10) {
		unit /= 10;
		tdt__string_printf(string, "%s%u", point, (unsigned int)(rest / unit));
		rest %= unit;
		point = "";
	}
	tdt__string_printf(string, " %s", units[i]);
}

static void state(struct tdt__string *string, const struct tdt_trace_info *info,
		  const struct tdt_print_options *options)
{
	static const struct {
		const char *word, *color;
	} states[] = { [TDT_TASK_WAITING] = { "pending", YELLOW },
		       [TDT_TASK_RUNNING] = { "running", GREEN },
		       [TDT_TASK_READY] = { "ready", CYAN },
		       [TDT_TASK_PANICKED] = { "panicked", RED } };

	tdt__string_puts(string, " ");
	color(string, states[info->state].color, options);
	tdt__string_puts(string, states[info->state].word);
	color(string, PLAIN, options);
	if (info->state_ns != 0)
		duration(string, info->state_ns);
}

static void task_leaves(struct tdt__string *string, const struct tdt_trace_info *info)
{
	tdt__string_puts(string, ", ");
	if (info->leaves != 0)
		count_leaves(string, info->leaves);
	else if (info->state == TDT_TASK_WAITING && info->leaves_elsewhere == 0 && info->leaves_lost == 0)
		tdt__string_puts(string, "no leaves (the poll cloned no waker)");
	else
		tdt__string_puts(string, "no leaves");
	if (info->leaves_elsewhere != 0)
		tdt__string_printf(string, ", %" PRIu32 " more on other threads", info->leaves_elsewhere);
	if (info->leaves_lost != 0)
		tdt__string_printf(string, ", %" PRIu32 " more lost for want of memory", info->leaves_lost);
}

static void task_line(struct tdt__string *string, const struct tdt_trace_info *info,
		      const struct tdt_print_options *options)
{
	const bool utf8 = options->utf8 == TDT_PRINT_YES;

	tdt__string_puts(string, "task ");
	color(string, BOLD, options);
	tdt__string_printf(string, "%" PRIu64, info->id);
	if (info->name != NULL) {
		tdt__string_puts(string, " \"");
		tdt__string_escape(string, info->name, utf8, '"');
		tdt__string_puts(string, "\"");
	}
	color(string, PLAIN, options);
	state(string, info, options);
	task_leaves(string, info);
	if (info->file != NULL) {
		tdt__string_puts(string, ", spawned at ");
		tdt__string_escape(string, info->file, utf8, '\0');
		if (info->line != 0)
			tdt__string_printf(string, ":%" PRIu32, info->line);
		if (info->line != 0 && info->column != 0)
			tdt__string_printf(string, ":%" PRIu32, info->column);
	}
	tdt__string_puts(string, "\n");
}

static void place(struct tdt__string *string, const struct tdt_frame *frame, const struct tdt_print_options *options)
{
	size_t before = string->n, start;

	color(string, DIM, options);
	start = string->n;
	tdt__frame_place(string, frame, options);
	if (string->n == start)
		string->n = before;
	else
		color(string, PLAIN, options);
}

static void frame_line(struct text *text, const struct tdt__row *row, bool has_children)
{
	const struct tdt_frame *frame = tdt_node_frame(row->node);
	struct tdt__string *string = &text->string;

	color(string, frame->kind == TDT_NODE_CUT ? RED : BOLD, text->options);
	tdt__frame_name(string, frame, text->options);
	color(string, PLAIN, text->options);
	place(string, frame, text->options);
	if (frame->guessed)
		tdt__string_puts(string, " (callers may be missing)");
	if (row->leaves > 1 || (row->leaves == 1 && has_children)) {
		tdt__string_puts(string, " (");
		count_leaves(string, row->leaves);
		tdt__string_puts(string, ")");
	}
}

static void below_line(struct tdt__string *string, const struct tdt__row *row)
{
	tdt__string_printf(string, "... %" PRIu64 " frame%s", row->frames, row->frames == 1 ? "" : "s");
	if (row->leaves != 0) {
		tdt__string_puts(string, " and ");
		count_leaves(string, row->leaves);
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

static int draw(struct tdt__out *out, const struct text *text, const struct tdt_trace_info *info)
{
	struct tdt__string string = { 0 };
	struct indentation indentation = { 0 };
	uint32_t row = text->line[0].first_child;
	int err;

	task_line(&string, info, text->options);
	if (!string.failed)
		tdt__out_add(out, string.bytes, string.n);
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

int tdt__print_text(struct tdt__out *out, const struct tdt_trace *trace, const struct tdt_node *root,
		    const struct tdt_print_options *options)
{
	struct text text = { .options = options };
	int err = tdt__view_make(&text.view, root, options);

	if (err != 0)
		return err;
	err = allocate(&text);
	if (err == 0)
		do_rows(&text);
	if (err == 0)
		err = text.string.failed ? -ENOMEM : draw(out, &text, tdt_trace_info(trace));
	tdt__string_free(&text.string);
	free(text.slot);
	free(text.shape);
	free(text.line);
	free(text.view.row);
	return err;
}
