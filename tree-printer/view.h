/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Which frames of a tree are shown to a reader. */

#include <stdint.h>

#include <tdt/dump.h>

/*
 * All nodes of the tree, indexed by their ids: an array of `*n` pointers, which the caller frees.
 * NULL: no memory.
 */
const struct tdt_node **tdt__nodes_by_id(const struct tdt_node *root, uint32_t *n);

/* A line that is shown.  Rows are in depth-first order; row 0 is the task. */
struct tdt__row {
	const struct tdt_node *node; /* NULL: the row stands for all frames below the depth limit */
	uint32_t parent;             /* the row of the parent */
	uint32_t depth;              /* 1: a child of the task */
	uint64_t frames;             /* how many frames a row without a node stands for */
	uint64_t leaves;             /* that wait here, or in hidden frames below */
	bool hides_futures;          /* futures that wait here, or in hidden frames below, are not
					in the tree */
};

struct tdt__view {
	struct tdt__row *row;
	uint32_t n;
};

struct tdt__folded;

/*
 * Make the view of a tree that `options` ask for, with `folded` (fold.h) of its nodes; NULL: no
 * node is folded.  Returns 0 or -ENOMEM.  The caller frees the view with free(view->row).
 */
int tdt__view_make(struct tdt__view *view, const struct tdt_node *root,
		   const struct tdt_print_options *options, const struct tdt__folded *folded);
