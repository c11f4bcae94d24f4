// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Merging: frames that several stacks share become one node.  Leaves come in the order they were captured, so siblings
 * come in the order they were first seen.
 */

#include <config.h>

#include "call_tree.h"

#include <errno.h>
#include <stdlib.h>

#include "symbolize.h"

struct merge {
	struct tdt__tree *tree;
	const struct tdt__capture *capture;
	const struct tdt__modules *modules;
	struct tdt_node **node; /* of each captured frame that has one already: its innermost function */
	uint32_t *path;         /* the frames of one stack that have none, innermost first */
};

/* Put the functions at a captured PC under `parent`, outermost first.  Returns the innermost. */
static struct tdt_node *add_frame(struct merge *merge, struct tdt_node *parent, const struct tdt__captured *captured)
{
	const struct tdt__module *module = tdt__modules_find(merge->modules, captured->frame.pc - 1);
	const struct tdt__symbol *symbol = NULL;
	struct tdt_frame frame = { .size = sizeof(struct tdt_frame), .kind = TDT_NODE_FRAME, .pc = captured->frame.pc };
	size_t places = 0;

	if (module != NULL) {
		symbol = tdt__symbolize(module, captured->frame.pc, true);
		if (symbol == NULL)
			return NULL;
		frame.module = module->path;
		frame.module_offset = captured->frame.pc - module->bias;
		frame.build_id = module->build_id[0] != '\0' ? module->build_id : NULL;
		frame.symbol = symbol->symbol;
		frame.symbol_offset = symbol->symbol_offset;
		places = symbol->n;
	}
	frame.guessed = captured->frame.guessed ||
			atomic_load_explicit(&merge->capture->astray, memory_order_relaxed);
	do {
		if (places > 0) {
			const struct tdt__place *place = &symbol->place[places - 1];

			frame.function = place->function;
			frame.file = place->file;
			frame.directory = place->directory;
			frame.line = place->line;
			frame.column = place->column;
		}
		parent = tdt__tree_add(merge->tree, parent, &frame, places <= 1 ? captured->leaves : 0, false);
		/* What follows was inlined into what was just added. */
		frame.inlined = true;
		frame.guessed = false;
		frame.symbol = NULL;
		frame.symbol_offset = 0;
	} while (parent != NULL && places-- > 1);
	return parent;
}

/* What a stack hangs on whose outermost captured frame has `parent`: the root, or a node that says where it was cut. */
static struct tdt_node *outermost(struct merge *merge, uint32_t parent)
{
	struct tdt_frame cut = {
		.size = sizeof(struct tdt_frame),
		.kind = TDT_NODE_CUT,
		.cut = (enum tdt_cut)(parent - TDT__PARENT_TOP),
	};

	if (parent == TDT__PARENT_TOP)
		return &merge->tree->root;
	return tdt__tree_add(merge->tree, NULL, &cut, 0, false);
}

static int add_stack(struct merge *merge, uint32_t leaf)
{
	const struct tdt__captured *frames = merge->capture->frames;
	struct tdt_node *node;
	uint32_t n = 0, index = leaf;

	for (; tdt__is_frame(index) && merge->node[index] == NULL; index = frames[index].parent)
		merge->path[n++] = index;
	node = tdt__is_frame(index) ? merge->node[index] : outermost(merge, index);
	while (node != NULL && n > 0) {
		index = merge->path[--n];
		node = add_frame(merge, node, &frames[index]);
		merge->node[index] = node;
	}
	return node != NULL ? 0 : -errno;
}

int tdt__call_tree(struct tdt__tree *tree, const struct tdt__capture *capture)
{
	struct merge merge = { tree, capture, tdt__walk_modules(&capture->walk), NULL, NULL };
	int error = 0;

	if (capture->n == 0)
		return 0;
	merge.node = calloc(capture->n, sizeof merge.node[0]);
	merge.path = malloc(capture->n * sizeof merge.path[0]);
	if (merge.node == NULL || merge.path == NULL)
		error = -ENOMEM;
	for (uint32_t i = 0; error == 0 && i < capture->n; i++)
		if (capture->frames[i].leaves > 0)
			error = add_stack(&merge, i);
	free(merge.path);
	free(merge.node);
	return error;
}
