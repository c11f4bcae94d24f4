/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The nodes of a call tree and their storage, for every kind of trace: captured or built.  One
 * thread makes a tree; after that it is only read, by any thread.
 *
 * Nodes never move: a pointer to a node is good until tdt__tree_fini().
 */

#include <stdbool.h>

#include <tdt/tree.h>

#include "base/arena.h"
#include "base/array.h"

struct tdt__tree;

struct tdt_node {
	struct tdt_frame frame;
	struct tdt__tree *tree; /* the tree to which the node belongs */
	struct tdt_node *parent;
	struct tdt_node *first_child;
	struct tdt_node *last_child;
	struct tdt_node *next_sibling;
	uint32_t id;
	uint32_t leaves;
};

/* Must not be moved: its nodes point to it. */
struct tdt__tree {
	struct tdt_node root;
	uint32_t n;       /* nodes, the root included */
	uint32_t unnamed; /* the nodes that were not named in time */
	/*
	 * All nodes but the root, so that many siblings are found as fast as few; or none, if the
	 * tree is small.
	 */
	TDT__TABLE(struct tdt_node *, known, n_known);
	/* For nodes and strings.  What was taken before a failure stays there, unused. */
	struct tdt__arena arena;
};

/* Make a tree of its root alone.  Can't fail. */
void tdt__tree_init(struct tdt__tree *tree);

/* Free all but `tree` itself. */
void tdt__tree_fini(struct tdt__tree *tree);

/*
 * Add `frame` under `parent` (of this tree; NULL: the root), or find the child of `parent` that is
 * the same frame, and count `leaves` more leaves there.  Two cuts are the same if they have the
 * same reason.  Two frames are the same if they have the same function, file, line, column and
 * module, and both are inlined or neither is.  Their PCs may differ, because a compiler may make
 * several calls of one in the source; the first PC is kept.  Where the function or the line is
 * unknown, only frames with the same PC are the same.
 *
 * The frame's strings are copied into the tree if `copy_strings`; otherwise they must outlive it.
 * Returns NULL and errno, with the tree as it was: ENOMEM; EOVERFLOW (more than UINT32_MAX nodes,
 * or leaves in one node).
 */
struct tdt_node *tdt__tree_add(struct tdt__tree *tree, struct tdt_node *parent,
			       const struct tdt_frame *frame, uint32_t leaves, bool copy_strings);

/*
 * Set `*copy` to a copy of `string` that lives as long as the tree, or to NULL if `string` is NULL.
 * Returns 0 or -ENOMEM.
 */
int tdt__tree_string(struct tdt__tree *tree, const char *string, const char **copy);
