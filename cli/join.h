/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CLI_JOIN_H
#define TDT_CLI_JOIN_H

/* A task's wait tree, and a tracer's stacks of it in the same tree. */

#include <stdio.h>

#include <tdt/print.h>
#include <tdt/tree.h>

#include "cli/join_index.h"
#include "cli/ustack.h"

/* How many stacks of each kind end in a node. */
struct tally {
	uint64_t seen[USTACK_KINDS];
};

struct joined {
	struct tdt_trace *trace;
	struct join_index index; /* of its tree, once there is a stack */
	struct tally *tally; /* by id of the node */
	size_t room;
	struct tally all; /* of the task */
};

enum {
	JOINED_NODES_MAX = 1 << 20 /* that stacks may add to a tree */
};

/* Begin with `trace`, a built one, taken over.  0 or -ENOMEM (the trace stays the caller's). */
int joined_init(struct joined *joined, struct tdt_trace *trace);

/* Add a stack.  0, -ENOMEM, or -E2BIG: too many different stacks. */
int joined_add(struct joined *joined, const struct ustack *stack);

/* Free the trace and all. */
void joined_fini(struct joined *joined);

/*
 * Print as text or as JSON, whose meaning tdt-join-ustack(1) describes.  In `options`, `utf8` and
 * `color` are YES or NO, never AUTO.  Returns 0 or a negative errno.
 */
int joined_print(const struct joined *joined, FILE *out, const struct tdt_print_options *options);

#endif
