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

#include "join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* --- Names ----------------------------------------------------------------- */

/* The length of a symbol without what compilers append to it: parse.constprop.0, parse.part.1.cold, ... */
static size_t plain_length(const char *symbol)
{
	static const char *const suffixes[] = { ".constprop.", ".part.", ".isra.",     ".cold",
						".lto_priv.",  ".llvm.", ".localalias" };
	size_t shortest = strlen(symbol);

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		const char *suffix = strstr(symbol, suffixes[i]);

		if (suffix != NULL && suffix != symbol && (size_t)(suffix - symbol) < shortest)
			shortest = (size_t)(suffix - symbol);
	}
	return shortest;
}

static bool same_plain(const char *a, const char *b)
{
	size_t n = plain_length(a);

	return n == plain_length(b) && strncmp(a, b, n) == 0;
}

/* Whether `text` is what a demangler may put behind a function's name: parameters, a hash of Rust's. */
static bool is_tail(const char *text)
{
	return text[0] == '(' || text[0] == '[' || starts_with(text, "::h") || text == strstr(text, " (");
}

/* `tracer` may have parameters, and before a template's name the type it returns; `function` has not. */
static bool same_function(const char *tracer, const char *function)
{
	size_t n = strlen(function);

	if (same_plain(tracer, function))
		return true;
	for (const char *at = tracer; n > 0 && (at = strstr(at, function)) != NULL; at++)
		if ((at == tracer || at[-1] == ' ') && is_tail(at + n))
			return true;
	return false;
}

enum match { NO_MATCH, SAME_FUNCTION, SAME_ADDRESS };

static enum match match(const struct tdt_frame *node, const struct ustack_frame *frame)
{
	if (node->kind != TDT_NODE_FRAME || node->inlined)
		return NO_MATCH;
	if (frame->name == NULL)
		return frame->address != 0 && node->pc == frame->address ? SAME_ADDRESS : NO_MATCH;
	if (node->symbol != NULL && node->symbol_offset == frame->offset && frame->offset != 0 &&
	    strcmp(node->symbol, frame->name) == 0)
		return SAME_ADDRESS;
	if ((node->symbol != NULL && same_plain(node->symbol, frame->name)) ||
	    (node->function != NULL && same_function(frame->name, node->function)))
		return SAME_FUNCTION;
	return NO_MATCH;
}

/* --- The tree -------------------------------------------------------------- */

/* What may lie in the tree between two frames of the stack. */
static bool is_between(const struct tdt_frame *node)
{
	return node->kind == TDT_NODE_CUT || node->inlined ||
	       (node->function != NULL && starts_with(node->function, "tdt_"));
}

/* The node after `node` below `top`, with or without the children of `node`; NULL: no more. */
static const struct tdt_node *next_below(const struct tdt_node *top, const struct tdt_node *node, bool children)
{
	if (children && tdt_node_first_child(node) != NULL)
		return tdt_node_first_child(node);
	while (node != top && tdt_node_next_sibling(node) == NULL)
		node = tdt_node_parent(node);
	return node == top ? NULL : tdt_node_next_sibling(node);
}

/*
 * From a function down into those inlined in it that have the same address: all of them, or only as long as they have
 * its name, too.  (Of a function that compilers split they may inline the parts again, under the whole's name.)
 */
static const struct tdt_node *into_inlined(const struct tdt_node *node, bool all)
{
	const struct tdt_node *child = tdt_node_first_child(node);

	while (child != NULL) {
		const struct tdt_frame *outer = tdt_node_frame(node), *inner = tdt_node_frame(child);

		if (inner->inlined && inner->pc == outer->pc &&
		    (all || (inner->function != NULL && outer->function != NULL &&
			     strcmp(inner->function, outer->function) == 0))) {
			node = child;
			child = tdt_node_first_child(node);
		} else {
			child = tdt_node_next_sibling(child);
		}
	}
	return node;
}

static const struct tdt_node *find(const struct tdt_node *parent, const struct ustack_frame *frame)
{
	const struct tdt_node *best = NULL, *node = tdt_node_first_child(parent);

	while (node != NULL) {
		enum match found = match(tdt_node_frame(node), frame);

		if (found == SAME_ADDRESS)
			return into_inlined(node, true);
		if (found == SAME_FUNCTION && best == NULL)
			best = node;
		node = next_below(parent, node, found == NO_MATCH && is_between(tdt_node_frame(node)));
	}
	return best != NULL ? into_inlined(best, false) : NULL;
}

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

	if (node == NULL)
		return -errno;
	*parent = node;
	if (tdt_node_id(node) >= JOINED_NODES_MAX)
		return -E2BIG;
	return make_room(joined, tdt_node_id(node));
}

static int add_frame(struct joined *joined, const struct tdt_node **parent, const struct ustack_frame *from)
{
	struct tdt_frame frame = { .size = sizeof(frame), .kind = TDT_NODE_FRAME, .pc = from->address };
	char *name = from->name == NULL ? NULL : strndup(from->name, plain_length(from->name));
	int err;

	if (from->name != NULL && name == NULL)
		return -ENOMEM;
	frame.function = name != NULL ? name : from->address == 0 ? "[unknown]" : NULL;
	err = add_node(joined, parent, &frame);
	free(name);
	return err;
}

/* --- The stack ------------------------------------------------------------- */

static bool is_traced_poll(const struct ustack_frame *frame)
{
	return frame->name != NULL &&
	       (same_plain(frame->name, "tdt__traced_poll") || same_plain(frame->name, "tdt__asked_poll"));
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
	int err = 0;

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
		next = find(at, &stack->frame[i]);
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
	tdt_trace_free(joined->trace);
	free(joined->tally);
	*joined = (struct joined){ 0 };
}
