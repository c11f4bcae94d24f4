/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_CALL_TREE_H
#define TDT_SRC_CALL_TREE_H

/* From the stacks of a capture to the call tree with names. */

#include "capture.h"
#include "tree.h"

/*
 * Put the capture's stacks into `tree`, which is empty.  The nodes' strings are those of the symbols' cache and of the
 * capture, which must outlive the tree.  Asker's side: looks names up.  Returns 0 or a negative errno (-ENOMEM,
 * -EOVERFLOW), the tree being then half made.
 */
int tdt__call_tree(struct tdt__tree *tree, const struct tdt__capture *capture);

#endif
