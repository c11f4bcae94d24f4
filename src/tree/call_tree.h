/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TREE_CALL_TREE_H
#define TDT_SRC_TREE_CALL_TREE_H

/* From recorded stacks to the call tree with names. */

#include "tree/over.h"
#include "tree/stacks.h"
#include "tree/tree.h"

/*
 * Put the stacks into `tree`, which is empty, except those of leaves that the names prove to
 * be over; `*over` says how many are left.  The nodes' strings are those of the symbols' cache and of
 * the stacks' modules, which must outlive the tree.  The requester calls this.  It has names looked up until
 * `deadline`; frames that have none by then are marked.  Returns 0 or a negative errno (-ENOMEM,
 * -EOVERFLOW), the tree being then half made.
 */
int tdt__call_tree(struct tdt__tree *tree, const struct tdt__stacks *stacks, struct tdt__over *over,
		   uint64_t deadline);

#endif
