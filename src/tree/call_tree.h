/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* From recorded stacks to the call tree with names. */

#include "tree/over.h"
#include "tree/stacks.h"
#include "tree/tree.h"

/*
 * Put the stacks into `tree`, which is empty, except the stacks of leaves that the names prove to
 * be over; `*over` says how many leaves are left.  The nodes' strings belong to the symbol cache
 * and to the stacks' modules, which must outlive the tree.  The requester calls this.  Names are
 * looked up until `deadline`; frames that have none by then are marked.  Returns 0 or a negative
 * errno (-ENOMEM, -EOVERFLOW); after an error the tree is incomplete.
 */
int tdt__call_tree(struct tdt__tree *tree, const struct tdt__stacks *stacks, struct tdt__over *over,
		   uint64_t deadline);
