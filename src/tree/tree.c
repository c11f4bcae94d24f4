// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * The call tree: stacks merged where they are the same.
 *
 * A node is looked for among its parent's children: first at the last child, where the next of
 * several leaves side by side nearly always goes on.  Then the other children are tried one by one,
 * or, in a tree that is not small, found by a hash over parent and frame in one table of all nodes.
 * A stack may be deep, so nothing here recurses.
 */

#include "tree/tree.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/result.h"
#include "base/text.h"

enum {
	SMALL = 32, /* nodes: a tree of up to so many needs no table */
	/* Of a name.  Names of templates may have hundreds, and cost most of a warm tree. */
	HASHED_BYTES = 64
};

void tdt__tree_init(struct tdt__tree *tree)
{
	memset(tree, 0, sizeof(*tree));
	tree->root.tree = tree;
	tree->root.frame.size = sizeof tree->root.frame;
	tree->root.frame.kind = TDT_NODE_TASK;
	tree->n = 1;
}

void tdt__tree_fini(struct tdt__tree *tree)
{
	tdt__arena_fini(&tree->arena);
	tdt__table_fini(&tree->known_table);
}

int tdt__tree_string(struct tdt__tree *tree, const char *string, const char **copy)
{
	*copy = string == NULL ? NULL : tdt__arena_text(&tree->arena, string, strlen(string));
	return *copy == NULL && string != NULL ? -ENOMEM : 0;
}

/*
 * Whether only the PC distinguishes this call from others: without a line, two calls in one
 * function look the same.
 */
static bool only_pc(const struct tdt_frame *frame)
{
	return frame->function == NULL || frame->line == 0;
}

static bool same_frame(const struct tdt_frame *a, const struct tdt_frame *b)
{
	if (a->kind != b->kind || a->cut != b->cut)
		return false;
	if (a->kind == TDT_NODE_CUT)
		return true;
	if (a->line != b->line || a->column != b->column)
		return false;
	if (only_pc(a) && a->pc != b->pc)
		return false;
	return !a->inlined == !b->inlined && tdt__same_text(a->function, b->function) &&
	       tdt__same_text(a->file, b->file) && tdt__same_text(a->module, b->module);
}

/* Hash enough of what same_frame() compares to distinguish siblings. */
static uint32_t hash_child(const struct tdt_node *parent, const struct tdt_frame *frame)
{
	uint64_t hash = tdt__mix(0, parent->id);

	if (frame->kind == TDT_NODE_CUT)
		return (uint32_t)hash;
	hash = tdt__mix(hash, (uint64_t)frame->line << 32 | frame->column);
	hash = tdt__mix(hash, only_pc(frame) ? frame->pc : 0);
	if (frame->function != NULL)
		hash = tdt__hash_bytes(hash, frame->function,
				       strnlen(frame->function, HASHED_BYTES));
	return tdt__hash_fold(hash);
}

static struct tdt_node *find_child(const struct tdt__tree *tree, const struct tdt_node *parent,
				   const struct tdt_frame *frame, uint32_t hash)
{
	struct tdt_node *node = parent->last_child;
	uint32_t i;

	if (node == NULL || same_frame(&node->frame, frame))
		return node;
	if (tree->n_known == 0) {
		for (node = parent->first_child; node != NULL && !same_frame(&node->frame, frame);)
			node = node->next_sibling;
		return node;
	}
	TDT__INDEX_EACH (i, &tree->known_table.index, hash) {
		node = tree->known[i];
		if (node->parent == parent && same_frame(&node->frame, frame))
			return node;
	}
	return NULL;
}

/* The next node in depth-first order. */
static struct tdt_node *next_node(const struct tdt_node *node)
{
	if (node->first_child != NULL)
		return node->first_child;
	while (node != NULL && node->next_sibling == NULL)
		node = node->parent;
	return node == NULL ? NULL : node->next_sibling;
}

static bool into_table(struct tdt__tree *tree, struct tdt_node *node, uint32_t hash)
{
	return tdt__table_add(&tree->known_table, hash, &node, sizeof(struct tdt_node *)) !=
	       TDT__INDEX_NONE;
}

/* The tree is no longer small. */
static bool fill_table(struct tdt__tree *tree)
{
	for (struct tdt_node *node = next_node(&tree->root); node != NULL; node = next_node(node))
		if (!into_table(tree, node, hash_child(node->parent, &node->frame))) {
			tdt__table_fini(&tree->known_table);
			return false;
		}
	return true;
}

/* Keep a string of a new node.  A frame often shares its strings with its caller. */
static int keep_string(struct tdt__tree *tree, const char **string, const char *of_parent)
{
	if (tdt__same_text(*string, of_parent)) {
		*string = of_parent;
		return 0;
	}
	return tdt__tree_string(tree, *string, string);
}

/* Keep an array of strings that ends with NULL. */
static int keep_array(struct tdt__tree *tree, const char *const **array)
{
	const char **kept;
	size_t n = 0;
	int err = 0;

	if (*array == NULL)
		return 0;
	while ((*array)[n] != NULL)
		n++;
	kept = tdt__arena_take(&tree->arena, (n + 1) * sizeof(kept[0]));
	if (kept == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < n && err == 0; i++)
		err = tdt__tree_string(tree, (*array)[i], &kept[i]);
	kept[n] = NULL;
	*array = kept;
	return err;
}

static int keep_strings(struct tdt__tree *tree, struct tdt_frame *frame,
			const struct tdt_frame *parent)
{
	int err = keep_string(tree, &frame->function, parent->function);

	if (err == 0)
		err = keep_string(tree, &frame->file, parent->file);
	if (err == 0)
		err = keep_string(tree, &frame->directory, parent->directory);
	if (err == 0)
		err = keep_string(tree, &frame->module, parent->module);
	if (err == 0)
		err = keep_string(tree, &frame->symbol, parent->symbol);
	if (err == 0)
		err = keep_string(tree, &frame->build_id, parent->build_id);
	if (err == 0)
		err = keep_array(tree, &frame->also);
	if (err == 0)
		err = keep_string(tree, &frame->missing, parent->missing);
	return err;
}

static struct tdt_node *append_node(struct tdt__tree *tree, struct tdt_node *parent,
				    struct tdt_node *node)
{
	node->tree = tree;
	node->parent = parent;
	node->id = tree->n++;
	tree->unnamed += node->frame.unnamed;
	if (parent->last_child == NULL)
		parent->first_child = node;
	else
		parent->last_child->next_sibling = node;
	parent->last_child = node;
	return node;
}

struct tdt_node *tdt__tree_add(struct tdt__tree *tree, struct tdt_node *parent,
			       const struct tdt_frame *frame, uint32_t leaves, bool copy_strings)
{
	struct tdt_node *node;
	uint32_t hash;

	if (parent == NULL)
		parent = &tree->root;
	if (tree->n >= SMALL && tree->n_known == 0 && !fill_table(tree))
		goto no_memory;
	hash = tree->n_known != 0 ? hash_child(parent, frame) : 0;
	node = find_child(tree, parent, frame, hash);
	if (node != NULL) {
		if (leaves > UINT32_MAX - node->leaves)
			goto overflow;
		node->leaves += leaves;
		node->frame.guessed |= frame->guessed;
		return node;
	}
	if (tree->n == UINT32_MAX)
		goto overflow;
	node = tdt__arena_take(&tree->arena, sizeof *node);
	if (node == NULL)
		goto no_memory;
	memset(node, 0, sizeof(*node));
	node->frame = *frame;
	node->leaves = leaves;
	if (copy_strings && keep_strings(tree, &node->frame, &parent->frame) != 0)
		goto no_memory;
	if (tree->n_known != 0 && !into_table(tree, node, hash))
		goto no_memory;
	return append_node(tree, parent, node);

overflow:
	return tdt__nothing(-EOVERFLOW);
no_memory:
	return tdt__nothing(-ENOMEM);
}

/* Whether the caller gave a node; if not, errno says so. */
static bool is_node(const struct tdt_node *node)
{
	if (__builtin_expect(node == NULL, 0))
		errno = EINVAL;
	return node != NULL;
}

const struct tdt_node *tdt_node_parent(const struct tdt_node *node)
{
	return is_node(node) ? node->parent : NULL;
}

const struct tdt_node *tdt_node_first_child(const struct tdt_node *node)
{
	return is_node(node) ? node->first_child : NULL;
}

const struct tdt_node *tdt_node_next_sibling(const struct tdt_node *node)
{
	return is_node(node) ? node->next_sibling : NULL;
}

const struct tdt_node *tdt_node_next(const struct tdt_node *node)
{
	return is_node(node) ? next_node(node) : NULL;
}

const struct tdt_frame *tdt_node_frame(const struct tdt_node *node)
{
	return is_node(node) ? &node->frame : NULL;
}

uint32_t tdt_node_leaves(const struct tdt_node *node)
{
	return is_node(node) ? node->leaves : 0;
}

uint32_t tdt_node_id(const struct tdt_node *node)
{
	return is_node(node) ? node->id : 0;
}
