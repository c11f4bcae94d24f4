/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_TRACE_H
#define TDT_SRC_TRACE_H

/* An answer: what is said of the task, and the tree. */

#include "tree.h"

struct tdt_handle;
struct tdt__capture;

struct tdt_trace {
	struct tdt_trace_info info;
	char name[TDT_TASK_NAME_MAX + 1]; /* of a captured trace; a built one's is in its tree's storage */
	struct tdt_wait *waits;           /* of a built trace; a captured one's are in the capture */
	struct tdt__capture *capture;     /* a reference; NULL: the trace was built */
	/*
	 * Of a captured trace NULL until somebody wants it.  Released by whoever made it, acquired by readers: in
	 * tdt_trace_root(), both.
	 */
	struct tdt__tree *_Atomic tree;
};

/*
 * The trace of `task` that `capture` is, with no names looked up.  Takes over the reference to `capture`, also when it
 * fails: NULL and ENOMEM.
 */
struct tdt_trace *tdt__trace_captured(const struct tdt_handle *task, struct tdt__capture *capture);

/* The same, with nothing said of a task yet: that is for the caller to fill in. */
struct tdt_trace *tdt__trace_bare(struct tdt__capture *capture);

/*
 * Say of a task with the same stacks how many leaves it has, if the trace's names were looked up:
 * before that nobody knows which of the leaves that were captured are over.
 */
void tdt__trace_count(const struct tdt_trace *trace, struct tdt_trace_info *info);

/* tdt_trace_root(), with another limit for the names (tdt__clock()). */
const struct tdt_node *tdt__trace_root_by(const struct tdt_trace *trace, uint64_t deadline);

#endif
