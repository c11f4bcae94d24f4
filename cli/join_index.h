/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Finds the node of a tracer's frame in a tree, in the same time however many siblings it has. */

#include <stddef.h>

#include <libiberty/hashtab.h>

#include <tdt/tree.h>

#include "cli/ustack.h"

/* All zero: it has no tree yet. */
struct join_index {
	htab_t nodes;
};

/* Begin with the tree of `root`.  Returns 0 or -ENOMEM; join_index_fini() is needed after both. */
int join_index_init(struct join_index *index, const struct tdt_node *root);
void join_index_fini(struct join_index *index);

/* Add a node that was added to the tree.  Returns 0 or -ENOMEM. */
int join_index_add(struct join_index *index, const struct tdt_node *node);

/* Find the node of `frame`, which the function at `parent` called.  NULL: there is none. */
const struct tdt_node *join_index_find(struct join_index *index, const struct tdt_node *parent,
				       const struct ustack_frame *frame);

/* The length of a symbol without suffixes of compilers: 5 for parse.part.1.cold */
size_t join_plain_length(const char *symbol);
