// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Merging: frames that several stacks share become one node.  Leaves come in the order in which
 * they were recorded, so siblings come in the order in which they were first seen.
 */

#include "tree/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/modules.h"
#include "symbolize/namer.h"
#include "symbolize/symbolize.h"
#include "tree/named.h"

struct merge {
	struct tdt__tree *tree;
	const struct tdt__stacks *stacks;
	struct tdt__name *name; /* of each recorded frame */
	/* Of each recorded frame, the node of its innermost function.  NULL: none yet. */
	struct tdt_node **node;
	uint32_t *path;         /* the frames of one stack that have no node yet, innermost first */
	uint32_t *leaves;       /* of each recorded frame, the leaves that are not over */
};

/* A frame that was reported by name. */
static struct tdt_frame describe_named(const struct tdt__named *named)
{
	return (struct tdt_frame){ .size = sizeof(struct tdt_frame),
				   .kind = TDT_NODE_FRAME,
				   .function = named->function,
				   .file = named->file,
				   .line = named->line,
				   .column = named->column };
}

/* What is known of the code at a frame's PC. */
static struct tdt_frame describe_frame(const struct merge *merge, const struct tdt__name *name)
{
	const struct tdt__named *named = tdt__named_find(merge->stacks->named, name->pc);
	const struct tdt__module *module = name->module;
	const struct tdt__symbol *symbol = name->symbol;
	struct tdt_frame frame = { .size = sizeof frame, .kind = TDT_NODE_FRAME, .pc = name->pc };

	if (named != NULL)
		return describe_named(named);
	if (module == NULL)
		return frame;
	frame.module = tdt__module_path(module);
	frame.module_offset = name->pc - module->bias;
	frame.build_id = module->build_id[0] != '\0' ? module->build_id : NULL;
	frame.unnamed = symbol == NULL;
	if (symbol == NULL)
		return frame;
	frame.symbol = symbol->symbol;
	frame.symbol_offset = symbol->symbol_offset;
	frame.also = symbol->also;
	frame.missing = symbol->missing;
	return frame;
}

/*
 * Whether the frame of `inner` is only the rest of the function that is inlined innermost at its
 * caller, `outer`: gcc splits functions whose beginning often returns, and inlines the beginning
 * alone.
 */
static bool is_rest_of_inlined(const struct tdt__symbol *inner, const struct tdt__symbol *outer)
{
	if (inner == NULL || outer == NULL || inner->symbol == NULL || inner->n == 0 ||
	    outer->n < 2)
		return false;
	return strstr(inner->symbol, ".part.") != NULL &&
	       inner->place[inner->n - 1].function != NULL && outer->place[0].function != NULL &&
	       strcmp(inner->place[inner->n - 1].function, outer->place[0].function) == 0;
}

/*
 * Put the functions at a recorded PC under `parent`, outermost first.  Returns the innermost node.
 * `inner` is the frame that this frame has called, or TDT__NO_FRAME.
 */
static struct tdt_node *merge_frame(struct merge *merge, struct tdt_node *parent, uint32_t index,
				    uint32_t inner)
{
	const struct tdt__symbol *symbol = merge->name[index].symbol;
	struct tdt_frame frame = describe_frame(merge, &merge->name[index]);
	size_t places = symbol != NULL ? symbol->n : 0;
	size_t last =
	    inner != TDT__NO_FRAME && is_rest_of_inlined(merge->name[inner].symbol, symbol) ? 2 : 1;

	frame.guessed = merge->stacks->frames[index].frame.guessed ||
			atomic_load_explicit(&merge->stacks->astray, memory_order_relaxed);
	do {
		if (places > 0) {
			const struct tdt__place *place = &symbol->place[places - 1];

			frame.function = place->function;
			frame.file = place->file;
			frame.directory = place->directory;
			frame.line = place->line;
			frame.column = place->column;
		}
		parent = tdt__tree_add(merge->tree, parent, &frame,
				       places <= 1 ? merge->leaves[index] : 0, false);
		/* The next function was inlined into the one that was just added. */
		frame.inlined = true;
		frame.guessed = false;
		frame.symbol = NULL;
		frame.symbol_offset = 0;
		frame.also = NULL;
	} while (parent != NULL && places-- > last);
	return parent;
}

/*
 * The node under which a stack hangs whose outermost recorded frame has `parent`: the root, or a
 * node that says where the stack was cut.
 */
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

static int merge_stack(struct merge *merge, uint32_t leaf)
{
	const struct tdt__recorded *frames = merge->stacks->frames;
	struct tdt_node *node;
	uint32_t n = 0, index = leaf, inner;

	for (; tdt__is_frame(index) && merge->node[index] == NULL; index = frames[index].parent)
		merge->path[n++] = index;
	node = tdt__is_frame(index) ? merge->node[index] : outermost(merge, index);
	while (node != NULL && n > 0) {
		index = merge->path[--n];
		inner = n > 0 ? merge->path[n - 1] : TDT__NO_FRAME;
		node = merge_frame(merge, node, index, inner);
		merge->node[index] = node;
	}
	return node != NULL ? 0 : -errno;
}

/*
 * Find the modules in which the frames lie.  If modules were unloaded meanwhile, another module may
 * lie there now: then only modules that are never unloaded are reported.
 */
static void find_modules(struct merge *merge)
{
	const struct tdt__modules *modules = merge->stacks->modules;
	bool astray = atomic_load_explicit(&merge->stacks->astray, memory_order_relaxed);

	for (uint32_t i = 0; i < merge->stacks->n; i++) {
		struct tdt__name *name = &merge->name[i];

		name->pc = merge->stacks->frames[i].frame.pc;
		name->module = tdt__modules_find(modules, name->pc - 1);
		if (astray && name->module != NULL && !name->module->lasting)
			name->module = NULL;
		if (name->module != NULL)
			tdt__module_path(name->module); /* looked up here, where no lock is held */
	}
}

static int make_call_tree(struct merge *merge, struct tdt__over *over, uint64_t deadline)
{
	const struct tdt__stacks *stacks = merge->stacks;
	long left;
	int error;

	find_modules(merge);
	left = tdt__namer_find(stacks->modules, merge->name, stacks->n, deadline);
	if (left < 0)
		return (int)left;
	error = tdt__over_find(stacks, merge->name, merge->leaves, over);
	for (uint32_t i = 0; error == 0 && i < stacks->n; i++)
		if (merge->leaves[i] > 0)
			error = merge_stack(merge, i);
	return error;
}

int tdt__call_tree(struct tdt__tree *tree, const struct tdt__stacks *stacks, struct tdt__over *over,
		   uint64_t deadline)
{
	struct merge merge = { .tree = tree, .stacks = stacks };
	int error = -ENOMEM;

	*over = (struct tdt__over){ 0 };
	if (stacks->n == 0)
		return 0;
	merge.name = calloc(stacks->n, sizeof merge.name[0]);
	merge.node = calloc(stacks->n, sizeof merge.node[0]);
	merge.path = malloc(stacks->n * sizeof merge.path[0]);
	merge.leaves = malloc(stacks->n * sizeof merge.leaves[0]);
	if (merge.name != NULL && merge.node != NULL && merge.path != NULL && merge.leaves != NULL)
		error = make_call_tree(&merge, over, deadline);
	free(merge.leaves);
	free(merge.path);
	free(merge.node);
	free(merge.name);
	return error;
}
