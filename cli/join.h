/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The wait tree of a task, with a tracer's stacks of the task in the same tree. */

#include <stddef.h>
#include <stdio.h>

#include <libiberty/hashtab.h>

#include <tdt/print.h>
#include <tdt/tree.h>

#include "cli/ustack.h"

/*
 * The index finds the node of a tracer's frame in a tree, in the same time however many siblings it
 * has.  All zero: it has no tree yet.
 */
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

/* How many stacks of each kind end in a node. */
struct tally {
	uint64_t seen[USTACK_KINDS];
};

struct joined {
	struct tdt_trace *trace;
	struct join_index index; /* of the tree; made for the first stack */
	struct tally *tally;     /* of each node, by id */
	size_t room;             /* of `tally` */
	struct tally all;        /* of all stacks of the task */
};

enum {
	JOINED_NODES_MAX = 1 << 20 /* the ids of nodes that stacks add are lower */
};

/*
 * Begin with `trace`, which was built, not captured.  Returns 0, and takes over the trace; or
 * -ENOMEM, and the trace remains the caller's.
 */
int joined_init(struct joined *joined, struct tdt_trace *trace);

/* Add a stack.  Returns 0, -ENOMEM, or -E2BIG: too many different stacks. */
int joined_add(struct joined *joined, const struct ustack *stack);

/* Free everything, also the trace. */
void joined_fini(struct joined *joined);

/*
 * Print as text or as JSON, whose meaning tdt-join-ustack(1) describes.  In `options`, `utf8` and
 * `color` are YES or NO, never AUTO.  Returns 0 or a negative errno.
 */
int joined_print(const struct joined *joined, FILE *out, const struct tdt_print_options *options);
