/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The wait tree of a task, with a tracer's stacks of the task in the same tree. */

#include <stddef.h>
#include <stdio.h>

#include <tdt/print.h>
#include <tdt/tree.h>

#include "base/array.h"
#include "cli/ustack.h"

/* A node that is found by what a tracer knows of a frame: see join.c. */
struct keyed_node {
	uint64_t key;
	const struct tdt_node *anchor;
	const struct tdt_node *node; /* the first one below `anchor` that has this key */
};

/* How many stacks of each kind end in a node. */
struct tally {
	uint64_t seen[USTACK_KINDS];
};

struct joined {
	uint64_t id; /* of the task */
	struct tdt_trace *trace;
	TDT__TABLE(struct keyed_node, keyed, n_keyed);
	bool indexed;            /* the tree is, which is done for the first stack */
	struct tally *tally;     /* of each node, by id */
	size_t tallies, room;
	struct tally all;        /* of all stacks of the task */
};

enum {
	JOINED_NODES_MAX = 1 << 20 /* the ids of nodes that stacks add are lower */
};

/*
 * Begin with `trace`, which was built, not captured, and take it over: the caller calls
 * joined_fini() in any case.  Returns 0 or -ENOMEM.
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
