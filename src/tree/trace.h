/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TREE_TRACE_H
#define TDT_SRC_TREE_TRACE_H

/* An answer: what is said of the task, and the tree. */

#include "tree/tree.h"

struct tdt__stacks;

struct tdt_trace {
	struct tdt_trace_info info;
	char name[TDT_TASK_NAME_MAX + 1]; /* of a trace with stacks; a built one's is in its tree's storage */
	struct tdt_wait *waits;
	struct tdt__stacks *stacks;       /* NULL: the trace was built */
	/*
	 * Of a trace with stacks NULL until somebody wants it.  Released by whoever made it, acquired by readers: in
	 * tdt_trace_root(), both.
	 */
	struct tdt__tree *_Atomic tree;
};

static inline bool tdt__same_wait(const struct tdt_wait *a, const struct tdt_wait *b)
{
	return a->kind == b->kind && a->object == b->object && a->owner == b->owner;
}

/*
 * A trace with these stacks, and no names looked up, that says `info` of its task, and how many leaves there are.  Takes
 * over the stacks, also when it fails: NULL and ENOMEM, also if `stacks` is NULL.
 */
struct tdt_trace *tdt__trace_of(const struct tdt_trace_info *info, struct tdt__stacks *stacks);

/* The same, with nothing said of a task yet: that is for the caller to fill in. */
struct tdt_trace *tdt__trace_bare(struct tdt__stacks *stacks);

/*
 * Say of a task with the same stacks how many leaves it has, if the trace's names were looked up:
 * before that nobody knows which of the leaves that were recorded are over.
 */
void tdt__trace_count(const struct tdt_trace *trace, struct tdt_trace_info *info);

/* tdt_trace_root(), with another limit for the names (tdt__clock()). */
const struct tdt_node *tdt__trace_root_by(const struct tdt_trace *trace, uint64_t deadline);

#endif
