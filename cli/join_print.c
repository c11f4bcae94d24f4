// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Prints the joined tree as text and as JSON.
 *
 * The text is that of tdt_trace_print(), with a mark behind each place where a leaf waits or where
 * the tracer saw the task.  There is one difference: subtrees that read the same are not folded,
 * because their marks differ.
 */

#include "cli/join.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tree-printer/forms.h"
#include "tree-printer/frame.h"
#include "tree-printer/terminal.h"
#include "tree-printer/view.h"
#include "tree-printer/words.h"

static const struct {
	const char *word, *color, *key;
} ustack_kinds[USTACK_KINDS] = {
	[USTACK_ON_CPU] = { "on CPU", TDT__GREEN, "on_cpu" },
	[USTACK_WAITED] = { "waited", TDT__YELLOW, "waited" },
	[USTACK_LATE] = { "long poll", TDT__RED, "long_polls" },
};

struct joined_text {
	const struct joined *joined;
	const struct tdt_print_options *options;
	struct tdt__view view;
	struct tally *tally; /* of each row: of the node, and of hidden plumbing below it */
	bool *last;          /* of each row: whether it is the last child of its parent */
	struct tdt__string line;
	struct tdt__indentation indentation;
};

static void times(struct joined_text *text, uint64_t n)
{
	tdt__string_printf(&text->line, "%s%" PRIu64, tdt__glyphs(text->options)->times, n);
}

static void marks(struct joined_text *text, const struct tally *tally, uint64_t leaves,
		  const char *between)
{
	const char *separator = between;

	if (leaves > 0) {
		bool running = tdt_trace_info(text->joined->trace)->state == TDT_TASK_RUNNING;

		tdt__string_puts(&text->line, separator);
		tdt__colored(&text->line, running ? TDT__GREEN : TDT__YELLOW,
			     running ? "running" : "waiting");
		if (leaves > 1)
			times(text, leaves);
		separator = ", ";
	}
	for (int kind = 0; kind < USTACK_KINDS; kind++) {
		if (tally->seen[kind] == 0)
			continue;
		tdt__string_puts(&text->line, separator);
		tdt__colored(&text->line, ustack_kinds[kind].color, ustack_kinds[kind].word);
		times(text, tally->seen[kind]);
		separator = ", ";
	}
}

static void frame_line(struct joined_text *text, uint32_t row)
{
	const struct tdt__row *shown = &text->view.row[row];
	const struct tdt_frame *frame = tdt_node_frame(shown->node);

	tdt__indent(&text->line, &text->indentation, shown->depth, text->last[row]);
	tdt__frame_line(&text->line, frame);
	if (frame->guessed)
		tdt__string_puts(&text->line, " (callers may be missing)");
	marks(text, &text->tally[row], shown->leaves, "  ");
	tdt__string_puts(&text->line, "\n");
}

/*
 * Add the tally of each node to its row, or, if the node is hidden, to the row of the nearest shown
 * node above.  Also find which rows are the last children.  Returns 0 or -ENOMEM.
 */
static int fill_rows(struct joined_text *text, const struct tdt_node *root)
{
	uint32_t n_nodes, row = 0;
	const struct tdt_node **nodes = tdt__nodes_by_id(root, &n_nodes);
	uint32_t *row_of = calloc(nodes != NULL ? n_nodes : 1, sizeof(*row_of));

	text->tally = calloc(text->view.n, sizeof(*text->tally));
	text->last = calloc(text->view.n, sizeof(*text->last));
	if (nodes == NULL || row_of == NULL || text->tally == NULL || text->last == NULL) {
		free(row_of);
		free(nodes);
		return -ENOMEM;
	}
	for (row = 1; row < text->view.n; row++)
		row_of[tdt_node_id(text->view.row[row].node)] = row;
	for (uint32_t id = 0; id < n_nodes; id++) {
		if (id > 0 && row_of[id] == 0)
			row_of[id] = row_of[tdt_node_id(tdt_node_parent(nodes[id]))];
		for (int kind = 0; kind < USTACK_KINDS; kind++)
			text->tally[row_of[id]].seen[kind] += text->joined->tally[id].seen[kind];
	}
	/* Going up from the end, the first child of a parent that is met is the last child. */
	memset(row_of, 0, n_nodes * sizeof(*row_of));
	for (row = text->view.n; row-- > 1;)
		text->last[row] = row_of[text->view.row[row].parent]++ == 0;
	free(row_of);
	free(nodes);
	return 0;
}

static int print_rows(struct joined_text *text, struct tdt__out *out)
{
	static const struct tally none;

	/* The lines of the task as the library prints them, which what was seen follows. */
	tdt__task_lines(&text->line, tdt_trace_info(text->joined->trace),
			(struct tdt__task_kind){ 0 }, NULL);
	text->line.n -= text->line.n > 0;
	if (memcmp(&text->joined->all, &none, sizeof(none)) == 0)
		tdt__string_puts(&text->line, ", not seen by the tracer");
	else
		marks(text, &text->joined->all, 0, ", ");
	tdt__string_puts(&text->line, "\n");
	tdt__out_take(out, &text->line);
	for (uint32_t row = 1; row < text->view.n && !out->no_memory; row++) {
		frame_line(text, row);
		tdt__out_take(out, &text->line);
	}
	return tdt__out_end(out);
}

static int print_text(const struct joined *joined, FILE *file,
		      const struct tdt_print_options *options)
{
	struct joined_text text = { .joined = joined, .options = options, .line.options = options };
	const struct tdt_node *root = tdt_trace_root(joined->trace);
	struct tdt__out out = { .file = file };
	int err = tdt__view_make(&text.view, root, options, NULL);

	if (err == 0)
		err = fill_rows(&text, root);
	if (err == 0)
		err = print_rows(&text, &out);
	tdt__string_free(&text.line);
	free(text.view.row);
	free(text.tally);
	free(text.last);
	return err;
}

static void json_tally(struct tdt__json *json, const struct tally *tally)
{
	for (int kind = 0; kind < USTACK_KINDS; kind++)
		tdt__json_known_u64(json, ustack_kinds[kind].key, tally->seen[kind]);
}

/* The JSON that the library prints for the trace, with the tallies as further members. */
static int print_json(const struct joined *joined, FILE *file)
{
	struct tdt__out out = { .file = file };
	struct tdt__json json = tdt__json_document(&out);
	uint32_t n;
	const struct tdt_node **nodes = tdt__nodes_by_id(tdt_trace_root(joined->trace), &n);

	if (nodes == NULL)
		return -ENOMEM;
	tdt__json_begin(&json, "task", '{');
	tdt__json_task_members(&json, tdt_trace_info(joined->trace));
	json_tally(&json, &joined->all);
	tdt__json_end(&json, '}');
	tdt__json_begin(&json, "nodes", '[');
	for (uint32_t id = 0; id < n; id++) {
		tdt__json_begin(&json, NULL, '{');
		tdt__json_node_members(&json, nodes[id]);
		json_tally(&json, &joined->tally[id]);
		tdt__json_end(&json, '}');
	}
	tdt__json_end(&json, ']');
	free(nodes);
	tdt__json_finish(&json);
	return tdt__out_end(&out);
}

int joined_print(const struct joined *joined, FILE *out, const struct tdt_print_options *options)
{
	return options->format == TDT_PRINT_JSON ? print_json(joined, out)
						 : print_text(joined, out, options);
}
