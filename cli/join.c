// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Lays a tracer's stack over a wait tree.
 *
 * The tree has a node for each function, also for inlined ones, with plumbing of tdt between them.
 * The tracer knows only the functions of the symbol table.  It sees the frames of the task and,
 * above them, those of the runtime.  So only the frames inside the innermost traced poll count,
 * from the outermost one to the innermost one.  Each frame is looked for below the node of the
 * frame before it, through inlined functions and plumbing.  The node with the frame's address
 * (symbol and offset, or the bare address) is preferred.  Otherwise the name decides, because a
 * sample lies somewhere in the function, not at the call that waits.  The address also tells in
 * which inlined functions the sample lies.  A frame without a node is added to the tree.
 */

#include "cli/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* --- The tree -------------------------------------------------------------- */

/* Make room for the tally of node `id`.  Returns 0 or -ENOMEM. */
static int make_tally_room(struct joined *joined, size_t id)
{
	size_t room = joined->room;
	struct tally *tally;

	while (room <= id)
		room = room == 0 ? 64 : 2 * room;
	if (room == joined->room)
		return 0;
	tally = reallocarray(joined->tally, room, sizeof(*tally));
	if (tally == NULL)
		return -ENOMEM;
	memset(tally + joined->room, 0, (room - joined->room) * sizeof(*tally));
	joined->tally = tally;
	joined->room = room;
	return 0;
}

/* Add a node below `*parent`, which becomes the new node.  Returns 0, -ENOMEM or -E2BIG. */
static int add_node(struct joined *joined, const struct tdt_node **parent,
		    const struct tdt_frame *frame)
{
	const struct tdt_node *node = tdt_trace_add(joined->trace, *parent, frame, 0);
	int err;

	if (node == NULL)
		return -errno;
	*parent = node;
	if (tdt_node_id(node) >= JOINED_NODES_MAX)
		return -E2BIG;
	err = make_tally_room(joined, tdt_node_id(node));
	return err == 0 ? join_index_add(&joined->index, node) : err;
}

static int add_ustack_frame(struct joined *joined, const struct tdt_node **parent,
			    const struct ustack_frame *from)
{
	struct tdt_frame frame = { .size = sizeof(frame),
				   .kind = TDT_NODE_FRAME,
				   .pc = from->address };
	char *name = from->name == NULL ? NULL : strndup(from->name, join_plain_length(from->name));
	int err;

	if (from->name != NULL && name == NULL)
		return -ENOMEM;
	frame.function = name != NULL ? name : from->address == 0 ? "[unknown]" : NULL;
	err = add_node(joined, parent, &frame);
	free(name);
	return err;
}

/* --- The stack ------------------------------------------------------------- */

static bool is_called(const struct ustack_frame *frame, const char *name)
{
	size_t n = strlen(name);

	return frame->name != NULL && join_plain_length(frame->name) == n &&
	       strncmp(frame->name, name, n) == 0;
}

static bool is_traced_poll(const struct ustack_frame *frame)
{
	return is_called(frame, "tdt__traced_poll") || is_called(frame, "tdt__observed_poll");
}

/* Whether the frame belongs to the probe itself, at which the tracer took the stack. */
static bool is_probe(const struct ustack_frame *frame)
{
	return frame->name != NULL && (tdt__starts_with(frame->name, "tdt_probe_") ||
				       tdt__starts_with(frame->name, "tdt_substitute_"));
}

/* Whether the innermost function is one of tdt. */
static bool ends_in_plumbing(const struct ustack *stack)
{
	return stack->n > 0 && stack->frame[0].name != NULL &&
	       tdt__starts_with(stack->frame[0].name, "tdt_");
}

int joined_add(struct joined *joined, const struct ustack *stack)
{
	static const struct tdt_frame cut = { .size = sizeof(cut),
					      .kind = TDT_NODE_CUT,
					      .cut = TDT_CUT_NO_INFO };
	const struct tdt_node *at = tdt_trace_root(joined->trace), *next;
	size_t inner = 0, outer = 0;
	int err = joined->index.nodes == NULL ? join_index_init(&joined->index, at) : 0;

	if (err != 0)
		return err;
	while (inner < stack->n && is_probe(&stack->frame[inner]))
		inner++;
	for (outer = inner; outer < stack->n && !is_traced_poll(&stack->frame[outer]); outer++)
		;
	if (outer == stack->n) { /* the tracer's stack ends before the traced poll */
		if (ends_in_plumbing(stack))
			inner = outer; /* tdt's own code ran: add no frame */
		else
			err = add_node(joined, &at, &cut);
	}
	for (size_t i = outer; i-- > inner && err == 0;) {
		next = join_index_find(&joined->index, at, &stack->frame[i]);
		if (next != NULL)
			at = next;
		else
			err = add_ustack_frame(joined, &at, &stack->frame[i]);
	}
	if (err != 0)
		return err;
	joined->tally[tdt_node_id(at)].seen[stack->kind] += stack->count;
	joined->all.seen[stack->kind] += stack->count;
	return 0;
}

int joined_init(struct joined *joined, struct tdt_trace *trace)
{
	size_t n = 0;

	*joined = (struct joined){ .trace = trace };
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node))
		n++;
	return make_tally_room(joined, n);
}

void joined_fini(struct joined *joined)
{
	join_index_fini(&joined->index);
	tdt_trace_free(joined->trace);
	free(joined->tally);
	*joined = (struct joined){ 0 };
}
