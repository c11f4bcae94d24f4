/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* A trace, the answer to a request: the task's info, and the tree. */

#include "tree/tree.h"

struct tdt__stacks;

struct tdt_trace {
	struct tdt_task_info info;
	/* Of a trace with stacks; a built trace has its name in its tree. */
	char name[TDT_TASK_NAME_MAX + 1];
	/* What `info.waits` points to, and, of a trace with stacks, room for names of owners. */
	void *listed_waits;
	struct tdt_wait *waits; /* in it */
	struct tdt__stacks *stacks;       /* NULL: the trace was built */
	/*
	 * In a trace with stacks this is NULL until a reader needs it.  The thread that makes the
	 * tree releases it, and readers acquire it: both in tdt__trace_root_by().
	 */
	struct tdt__tree *_Atomic tree;
};

static inline bool tdt__same_wait(const struct tdt_wait *a, const struct tdt_wait *b)
{
	return a->kind == b->kind && a->object == b->object && a->owner == b->owner;
}

/*
 * Make a trace with these stacks, without names.  It says `info` of its task, and how many leaves
 * the stacks have.  Takes over the stacks, even if it fails.  NULL and ENOMEM, also if `stacks` is
 * NULL.
 */
struct tdt_trace *tdt__trace_of(const struct tdt_task_info *info, struct tdt__stacks *stacks);

/* The same without info of a task, which the caller fills in. */
struct tdt_trace *tdt__trace_bare(struct tdt__stacks *stacks);

enum {
	TDT__OWNERS_NAMED = 8 /* the most owners of waits whose names a trace with stacks has */
};

/*
 * List the different owners that the waits of a trace with stacks name, as many as the trace has
 * room for names.  Returns how many they are.
 */
uint32_t tdt__trace_owners(const struct tdt_trace *trace, uint64_t owners[TDT__OWNERS_NAMED]);

/* Give the trace a copy of the name of the owner `owners[index]` of that list. */
void tdt__trace_name_owner(struct tdt_trace *trace, uint32_t index, uint64_t owner,
			   const char *name);

/*
 * Put into `info`, of a task with the same stacks, how many leaves it has, if the trace's names
 * were looked up: before that nobody knows which of the recorded leaves are over.
 */
void tdt__trace_count(const struct tdt_trace *trace, struct tdt_task_info *info);

/* tdt_trace_root() with another deadline for the names (tdt__clock()). */
const struct tdt_node *tdt__trace_root_by(const struct tdt_trace *trace, uint64_t deadline);
