// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The tree of the text form.  task_line.c makes the lines that stand above it.
 *
 * If several siblings read the same, with all that is below them, they are drawn once, with their
 * number.  To find them, each subtree gets a number, its *shape*; subtrees that read the same have
 * the same shape.  A table maps the text of a subtree (its line, then the shapes below it) to its
 * shape, and is filled from the bottom up.  So comparing two subtrees is comparing two numbers.
 * Lines are compared by number, too, because frames that read the same share a text (frames.c).
 */

#include "forms.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/texts.h"
#include "fold.h"
#include "terminal.h"
#include "tree/tree.h"
#include "view.h"
#include "words.h"

enum {
	NONE = 0 /* no row; 0 is the row of the task, which is no child */
};

/* The place of a row among the rows that are drawn. */
struct line {
	uint32_t first_child;
	uint32_t next_sibling;
	uint32_t times; /* how many siblings it stands for */
	uint32_t shape;
};

/* What a line says.  It has no padding, because it is compared as bytes. */
struct saying {
	uint64_t frames;  /* how many frames it stands for; 0: it is one frame */
	uint64_t leaves;  /* 0: the line does not say it */
	uint32_t text;    /* the number of the frame's text */
	uint32_t object;  /* the number of the text of its object + 1; 0: it has none */
	uint32_t guessed; /* 0 or 1 */
	uint32_t hides_futures; /* 0 or 1 */
};

/* The children of one shape of the row whose children are compared. */
struct shape {
	uint32_t seen_under; /* that row */
	uint32_t seen;       /* its first child of this shape */
};

struct text {
	const struct tdt_print_options *options;
	struct tdt__frames *frames;
	struct tdt__folded *folded; /* of each node */
	struct tdt__view view;
	struct line *line;   /* of each row */
	struct shape *shape; /* by number; at most one for each row */
	struct tdt__texts texts; /* of the shapes: what the line says, then the children's shapes */
	struct tdt__string string; /* the text that is made */
};

/* Set `*saying` to what the line of `row` says.  False: no memory. */
static bool say(struct text *text, const struct tdt__row *row, bool has_children,
		struct saying *saying)
{
	const struct tdt__folded *folded;

	*saying = (struct saying){ .frames = row->frames };
	if (row->node == NULL) {
		saying->leaves = row->leaves;
		return true;
	}
	folded = &text->folded[tdt_node_id(row->node)];
	saying->text = tdt__frames_text(text->frames, folded->frame, tdt__role_of(folded));
	if (folded->has != TDT__POLLED_NOTHING)
		saying->object =
		    tdt__frames_text(text->frames, folded->object, TDT__ROLE_OBJECT) + 1;
	saying->guessed = tdt_node_frame(row->node)->guessed != 0;
	saying->hides_futures = row->hides_futures;
	if (row->leaves > 1 || has_children)
		saying->leaves = row->leaves;
	return saying->text != UINT32_MAX &&
	       (folded->has == TDT__POLLED_NOTHING || saying->object != 0);
}

static void add_saying(struct tdt__string *line, const struct tdt__frames *frames,
		       const struct saying *saying)
{
	if (saying->frames != 0) {
		tdt__string_printf(line, "... %" PRIu64 " frame%s", saying->frames,
				   saying->frames == 1 ? "" : "s");
		if (saying->leaves != 0) {
			tdt__string_puts(line, " and ");
			tdt__count_leaves(line, saying->leaves);
		}
		tdt__string_puts(line, " below");
		return;
	}
	tdt__frames_add(line, frames, saying->text);
	if (saying->object != 0)
		tdt__frames_add(line, frames, saying->object - 1);
	if (saying->guessed)
		tdt__string_puts(line, " (callers may be missing)");
	if (saying->hides_futures)
		tdt__string_puts(line, " (futures that wait in it are not in this tree)");
	if (saying->leaves != 0)
		tdt__leaves_aside(line, saying->leaves);
}

/* Leave out each child of `row` that reads the same as a child before it. */
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

static void do_row(struct text *text, uint32_t row)
{
	struct line *line = &text->line[row];
	struct saying saying;

	join_repeats(text, row);
	text->string.n = 0;
	if (!say(text, &text->view.row[row], line->first_child != NONE, &saying)) {
		text->string.failed = true;
		return;
	}
	tdt__string_add(&text->string, &saying, sizeof(saying));
	for (uint32_t child = line->first_child; child != NONE;
	     child = text->line[child].next_sibling) {
		tdt__string_add(&text->string, &text->line[child].shape, sizeof(line->shape));
		tdt__string_add(&text->string, &text->line[child].times, sizeof(line->times));
	}
	if (!text->string.failed)
		line->shape = tdt__texts_number(&text->texts, text->string.bytes, text->string.n);
	text->string.failed |= line->shape == TDT__INDEX_NONE;
}

/* Find all shapes, from the last row to the first: children before their parents. */
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

/* The row that is drawn behind `row`; NONE: there are no more. */
static uint32_t next_row(const struct text *text, uint32_t row)
{
	if (text->line[row].first_child != NONE)
		return text->line[row].first_child;
	while (row != NONE && text->line[row].next_sibling == NONE)
		row = text->view.row[row].parent;
	return text->line[row].next_sibling; /* NONE after the task */
}

static void say_row(struct tdt__string *to, const struct text *text, uint32_t row)
{
	struct saying saying;

	memcpy(&saying, text->texts.text[text->line[row].shape].bytes, sizeof(saying));
	add_saying(to, text->frames, &saying);
}

static void draw_row(struct tdt__string *to, const struct text *text, uint32_t row,
		     struct tdt__indentation *indentation)
{
	const struct line *line = &text->line[row];

	tdt__indent(to, indentation, text->view.row[row].depth, line->next_sibling == NONE);
	say_row(to, text, row);
	if (line->times > 1)
		tdt__string_printf(to, "%s%" PRIu32, tdt__glyphs(text->options)->times,
				   line->times);
	tdt__string_puts(to, "\n");
}

static void draw(struct tdt__out *out, const struct text *text)
{
	struct tdt__string line = { .options = text->options };
	struct tdt__indentation indentation;

	for (uint32_t row = text->line[0].first_child; row != NONE && out->error == 0;
	     row = next_row(text, row)) {
		draw_row(&line, text, row, &indentation);
		out->no_memory |= line.failed;
		if (!line.failed)
			tdt__out_add(out, line.bytes, line.n);
		line.n = 0;
	}
	tdt__string_free(&line);
}

/*
 * The hash of the text of a tree.  The shapes have numbers in the order of their texts, and texts
 * of frames have the same numbers for all trees of a dump.
 */
static uint64_t hash_tree(const struct text *text)
{
	uint64_t hash = TDT__HASH_START;

	for (size_t i = 0; i < text->texts.n; i++)
		hash = tdt__hash_bytes(hash, text->texts.text[i].bytes, text->texts.text[i].n);
	for (uint32_t row = text->line[0].first_child; row != NONE;
	     row = text->line[row].next_sibling)
		hash = tdt__mix(hash, (uint64_t)text->line[row].shape << 32 |
					  text->line[row].times);
	return hash;
}

/* Find out what the lines of a tree say.  False: no memory.  text_fini() is called in any case. */
static bool text_init(struct text *text, const struct tdt_node *root, struct tdt__frames *frames)
{
	const struct tdt_print_options *options = frames->string.options;

	*text = (struct text){ .options = options, .frames = frames };
	text->folded = tdt__fold(root, frames, options->full != 0);
	if (text->folded == NULL ||
	    tdt__view_make(&text->view, root, options, text->folded) != 0)
		return false;
	text->line = calloc(text->view.n, sizeof(*text->line));
	text->shape = calloc(text->view.n, sizeof(*text->shape));
	if (text->line == NULL || text->shape == NULL)
		return false;
	do_rows(text);
	return !text->string.failed;
}

static void text_fini(struct text *text)
{
	tdt__string_free(&text->string);
	tdt__texts_fini(&text->texts);
	free(text->shape);
	free(text->line);
	free(text->view.row);
	free(text->folded);
}

void tdt__print_tree(struct tdt__out *out, const struct tdt__string *head,
		     const struct tdt_node *root, struct tdt__frames *frames,
		     struct tdt__reading *reading)
{
	struct text text;

	if (text_init(&text, root, frames)) {
		if (head != NULL)
			tdt__out_add(out, head->bytes, head->n);
		draw(out, &text);
		if (reading != NULL)
			*reading = (struct tdt__reading){ .hash = hash_tree(&text),
							  .partial = text.view.n < root->tree->n };
	} else {
		out->no_memory = true;
	}
	text_fini(&text);
}

void tdt__json_tree(struct tdt__json *json, const char *key, const struct tdt_node *root,
		    struct tdt__frames *frames)
{
	struct tdt__string said = { .options = frames->string.options };
	struct text text;
	bool made = text_init(&text, root, frames);
	uint32_t row = made ? text.line[0].first_child : NONE;

	tdt__json_begin(json, key, '[');
	for (; row != NONE && json->out->error == 0; row = next_row(&text, row)) {
		said.n = 0;
		say_row(&said, &text, row);
		tdt__string_add(&said, "", 1);
		tdt__json_begin(json, NULL, '[');
		tdt__json_u64(json, NULL, text.view.row[row].depth);
		tdt__json_string(json, NULL, said.failed ? NULL : said.bytes);
		tdt__json_u64(json, NULL, text.view.row[row].leaves);
		tdt__json_u64(json, NULL, text.line[row].times);
		tdt__json_end(json, ']');
	}
	tdt__json_end(json, ']');
	if (!made || said.failed)
		tdt__out_fail(json->out, -ENOMEM);
	tdt__string_free(&said);
	text_fini(&text);
}

void tdt__print_text(struct tdt__out *out, const struct tdt_trace *trace,
		     const struct tdt_node *root, const struct tdt_print_options *options)
{
	struct tdt__frames frames = { .string.options = options };
	struct tdt__string head = { .options = options };

	tdt__task_lines(&head, tdt_trace_info(trace), (struct tdt__task_kind){ 0 }, NULL);
	out->no_memory |= head.failed;
	if (!head.failed)
		tdt__print_tree(out, &head, root, &frames, NULL);
	tdt__string_free(&head);
	tdt__frames_fini(&frames);
}
