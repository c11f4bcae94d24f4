/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TREE_TREE_H
#define TDT_SRC_TREE_TREE_H

/*
 * The nodes of a call tree and where they are kept, for every kind of trace: captured or built.  A tree is made by one
 * thread; once made it is only read, by any.
 *
 * Nodes lie in chunks that never move, so a pointer to one is good until tdt__tree_fini().
 */

#include <stdbool.h>

#include <tdt/tree.h>

struct tdt__tree;

struct tdt_node {
	struct tdt_frame frame;
	struct tdt__tree *tree; /* that it is a node of */
	struct tdt_node *parent;
	struct tdt_node *first_child;
	struct tdt_node *last_child;
	struct tdt_node *next_sibling;
	struct tdt_node *next_in_bucket;
	uint32_t hash; /* of the parent and the frame; 0 without a table */
	uint32_t id;
	uint32_t leaves;
};

/* Must not be moved: its nodes point to it. */
struct tdt__tree {
	struct tdt_node root;
	uint32_t n;               /* nodes, the root included */
	uint32_t unnamed;         /* those of them that were not named in time */
	struct tdt_node **bucket; /* all nodes but the root, by hash: many siblings are found as fast as few */
	uint32_t buckets;         /* a power of two, or 0: the tree is small, and has no table */
	struct tdt__chunk *chunk; /* the one that is being filled, then the full ones */
};

/* A tree of nothing but its root.  Can't fail. */
void tdt__tree_init(struct tdt__tree *tree);

/* Free all but `tree` itself. */
void tdt__tree_fini(struct tdt__tree *tree);

/*
 * Add `frame` under `parent` (of this tree; NULL: the root), or find the child of `parent` that is the same frame, and
 * count `leaves` more leaves there.  The same is: a cut for the same reason; a frame of the same function, file, line,
 * column and module, inlined or not, whatever the PC, of which the first is kept: a compiler may make several calls of
 * one in the source.  Where function or line is unknown nothing but the same PC tells that it is the same call.
 *
 * The frame's strings are copied into the tree if `copy_strings`, else must outlive it.  NULL and errno, with the tree
 * as it was: ENOMEM; EOVERFLOW (more than UINT32_MAX nodes, or leaves in one).
 */
struct tdt_node *tdt__tree_add(struct tdt__tree *tree, struct tdt_node *parent, const struct tdt_frame *frame,
			       uint32_t leaves, bool copy_strings);

/* Set `*copy` to a copy of `string` that lives as long as the tree, or to NULL for NULL.  Returns 0 or -ENOMEM. */
int tdt__tree_string(struct tdt__tree *tree, const char *string, const char **copy);

#endif
