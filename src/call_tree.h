/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CALL_TREE_H
#define TDT_SRC_CALL_TREE_H

/* From the stacks of a capture to the call tree with names. */

#include "capture.h"
#include "over.h"
#include "tree.h"

/*
 * Put the capture's stacks into `tree`, which is empty, except those of leaves that the names prove to
 * be over; `*over` says how many are left.  The nodes' strings are those of the symbols' cache and of
 * the capture, which must outlive the tree.  The requester calls this.  It has names looked up until
 * `deadline`; frames that have none by then are marked.  Returns 0 or a negative errno (-ENOMEM,
 * -EOVERFLOW), the tree being then half made.
 */
int tdt__call_tree(struct tdt__tree *tree, const struct tdt__capture *capture, struct tdt__over *over,
		   uint64_t deadline);

#endif
