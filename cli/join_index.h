/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_JOIN_INDEX_H
#define TDT_CLI_JOIN_INDEX_H

/* Finds the node of a tree that is the frame of a tracer, however many siblings it has. */

#include <stddef.h>

#include <libiberty/hashtab.h>

#include <tdt/tree.h>

#include "cli/ustack.h"

/* All zero: no tree yet. */
struct join_index {
	htab_t nodes;
};

/* Begin with the tree of `root`.  0 or -ENOMEM; join_index_fini() is due then, too. */
int join_index_init(struct join_index *index, const struct tdt_node *root);
void join_index_fini(struct join_index *index);

/* A node was added to the tree.  0 or -ENOMEM. */
int join_index_add(struct join_index *index, const struct tdt_node *node);

/* Find the node of `frame`, a function that the one at `parent` called.  NULL: there is none. */
const struct tdt_node *join_index_find(struct join_index *index, const struct tdt_node *parent,
				       const struct ustack_frame *frame);

/* The length of a symbol without what compilers append: parse.constprop.0, parse.part.1.cold... */
size_t join_plain_length(const char *symbol);

#endif
