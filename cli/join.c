// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Lay a tracer's stack over a wait tree.
 *
 * The tree has a node for each function, inlined ones too, with plumbing of tdt's between them; the tracer knows the
 * functions of the symbol table only, and sees besides the task's frames the runtime's above them.  So: of the stack
 * counts what is inside the innermost traced poll, from the outermost frame on.  Each frame is looked for below the
 * node of the one before, through inlined functions and plumbing; by its address (symbol and offset, or the bare
 * address) if there is such a node, else by its name, since a sample lies somewhere in the function, not at the call
 * that waits.  The address also tells which inlined functions it was in.  What isn't there is added.
 */

#include <config.h>

#include "cli/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* --- The tree -------------------------------------------------------------- */

static int make_room(struct joined *joined, size_t id)
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

static int add_node(struct joined *joined, const struct tdt_node **parent, const struct tdt_frame *frame)
{
	const struct tdt_node *node = tdt_trace_add(joined->trace, *parent, frame, 0);
	int err;

	if (node == NULL)
		return -errno;
	*parent = node;
	if (tdt_node_id(node) >= JOINED_NODES_MAX)
		return -E2BIG;
	err = make_room(joined, tdt_node_id(node));
	return err == 0 ? join_index_add(&joined->index, node) : err;
}

static int add_frame(struct joined *joined, const struct tdt_node **parent, const struct ustack_frame *from)
{
	struct tdt_frame frame = { .size = sizeof(frame), .kind = TDT_NODE_FRAME, .pc = from->address };
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
	return is_called(frame, "tdt__traced_poll") || is_called(frame, "tdt__asked_poll");
}

/* What a tracer sees of the probe itself. */
static bool is_probe(const struct ustack_frame *frame)
{
	return frame->name != NULL &&
	       (starts_with(frame->name, "tdt_probe_") || starts_with(frame->name, "tdt_substitute_"));
}

/* Whether the innermost function is one of tdt's. */
static bool is_plumbing(const struct ustack *stack)
{
	return stack->n > 0 && stack->frame[0].name != NULL && starts_with(stack->frame[0].name, "tdt_");
}

int joined_add(struct joined *joined, const struct ustack *stack)
{
	static const struct tdt_frame cut = { .size = sizeof(cut), .kind = TDT_NODE_CUT, .cut = TDT_CUT_NO_INFO };
	const struct tdt_node *at = tdt_trace_root(joined->trace), *next;
	size_t inner = 0, outer = 0;
	int err = joined->index.nodes == NULL ? join_index_init(&joined->index, at) : 0;

	if (err != 0)
		return err;
	while (inner < stack->n && is_probe(&stack->frame[inner]))
		inner++;
	for (outer = inner; outer < stack->n && !is_traced_poll(&stack->frame[outer]); outer++)
		;
	if (outer == stack->n) { /* the tracer lost its way before it came there */
		if (is_plumbing(stack))
			inner = outer; /* from the start: it was our own code that ran */
		else
			err = add_node(joined, &at, &cut);
	}
	for (size_t i = outer; i-- > inner && err == 0;) {
		next = join_index_find(&joined->index, at, &stack->frame[i]);
		if (next != NULL)
			at = next;
		else
			err = add_frame(joined, &at, &stack->frame[i]);
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
	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL; node = tdt_node_next(node))
		n++;
	return make_room(joined, n);
}

void joined_fini(struct joined *joined)
{
	join_index_fini(&joined->index);
	tdt_trace_free(joined->trace);
	free(joined->tally);
	*joined = (struct joined){ 0 };
}
