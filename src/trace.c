// SPDX-License-Identifier: Apache-2.0 OR MIT
/* A trace that is built by hand: read from a file, or joined from others. */

#include <config.h>

#include "trace.h"

#include <errno.h>
#include <stdlib.h>

#include "options.h"

static int read_info(struct tdt_trace_info *ours, const struct tdt_trace_info *info)
{
	int err = info == NULL ? -EINVAL : tdt__options_read(ours, sizeof(*ours), info);

	if (err == 0 && (unsigned int)ours->state > TDT_TASK_PANICKED)
		err = -EINVAL;
	return err;
}

struct tdt_trace *tdt_trace_new(const struct tdt_trace_info *info)
{
	struct tdt_trace_info ours;
	struct tdt_trace *trace;
	int err = read_info(&ours, info);

	if (err != 0) {
		errno = -err;
		return NULL;
	}
	trace = malloc(sizeof(*trace));
	if (trace == NULL)
		return NULL;
	trace->info = ours;
	tdt__tree_init(&trace->tree);
	if (tdt__tree_string(&trace->tree, ours.name, &trace->info.name) != 0 ||
	    tdt__tree_string(&trace->tree, ours.file, &trace->info.file) != 0) {
		tdt_trace_free(trace);
		errno = ENOMEM;
		return NULL;
	}
	return trace;
}

static bool is_frame(const struct tdt_frame *frame)
{
	if (frame->kind == TDT_NODE_CUT)
		return frame->cut >= TDT_CUT_LIMIT && frame->cut <= TDT_CUT_MEMORY;
	return frame->kind == TDT_NODE_FRAME && frame->cut == TDT_CUT_NOT;
}

const struct tdt_node *tdt_trace_add(struct tdt_trace *trace, const struct tdt_node *parent,
				     const struct tdt_frame *frame, uint32_t leaves)
{
	if (trace == NULL || frame == NULL || !is_frame(frame) || (parent != NULL && parent->tree != &trace->tree)) {
		errno = EINVAL;
		return NULL;
	}
	/* The caller may only read the node, but it lies in the trace, which he may change. */
	return tdt__tree_add(&trace->tree, (struct tdt_node *)(uintptr_t)parent, frame, leaves, true);
}

const struct tdt_trace_info *tdt_trace_info(const struct tdt_trace *trace)
{
	return &trace->info;
}

const struct tdt_node *tdt_trace_root(const struct tdt_trace *trace)
{
	return &trace->tree.root;
}

uint32_t tdt_trace_stacks(const struct tdt_trace *trace)
{
	(void)trace;
	return 0;
}

size_t tdt_trace_stack(const struct tdt_trace *trace, uint32_t index, uint64_t *pcs, size_t max, enum tdt_cut *cut)
{
	(void)trace;
	(void)index;
	(void)pcs;
	(void)max;
	if (cut != NULL)
		*cut = TDT_CUT_NOT;
	return 0;
}

void tdt_trace_free(struct tdt_trace *trace)
{
	if (trace == NULL)
		return;
	tdt__tree_fini(&trace->tree);
	free(trace);
}
