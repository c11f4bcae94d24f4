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
#include "tree/tree.h"

enum {
	ANCHORS_MAX = 64, /* how many levels of plumbing a search goes through */
	WITHIN_MAX = 4096 /* a longer name is searched only from its beginning */
};

/* --- Names ----------------------------------------------------------------- */

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

/* Whether `text` may follow the name of a demangled function: parameters, or a hash of Rust. */
static bool is_tail(const char *text)
{
	return text[0] == '(' || text[0] == '[' || tdt__starts_with(text, "::h") ||
	       tdt__starts_with(text, " (");
}

/*
 * Whether a tracer's name and the name in the tree mean the same function.  `tracer` may have
 * parameters, and a template may have a type before its name; `function` has neither.
 */
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

/* --- Nodes ----------------------------------------------------------------- */

static bool is_function(const struct tdt_frame *node)
{
	return node->kind == TDT_NODE_FRAME && !node->inlined;
}

/* Whether a node may lie in the tree between two frames of the stack. */
static bool may_lie_between(const struct tdt_frame *node)
{
	return node->kind == TDT_NODE_CUT || node->inlined ||
	       (node->function != NULL && tdt__starts_with(node->function, "tdt_"));
}

static bool same_address(const struct tdt_frame *node, const struct ustack_frame *frame)
{
	if (!is_function(node))
		return false;
	if (frame->name == NULL)
		return frame->address != 0 && node->pc == frame->address;
	return node->symbol != NULL && node->symbol_offset == frame->offset && frame->offset != 0 &&
	       strcmp(node->symbol, frame->name) == 0;
}

static bool same_frame_name(const struct tdt_frame *node, const struct ustack_frame *frame)
{
	return is_function(node) && frame->name != NULL &&
	       ((node->symbol != NULL && same_plain(node->symbol, frame->name)) ||
		(node->function != NULL && same_function(frame->name, node->function)));
}

/* --- Keys ------------------------------------------------------------------ */

/* A hash begins with a different number for each kind of key. */
#define BY_PLACE UINT64_C(0xcbf29ce484222325)
#define BY_NAME UINT64_C(0x84222325cbf29ce4)
#define BY_PC UINT64_C(0x9ce484222325cbf2)
#define INLINED UINT64_C(1)
#define INLINED_OF_THAT_NAME UINT64_C(2)

static uint64_t by_name(const char *name)
{
	return tdt__hash_bytes(BY_NAME, name, plain_length(name));
}

static uint64_t by_pc(uint64_t pc)
{
	return tdt__hash_bytes(BY_PC, &pc, sizeof(pc));
}

static uint64_t by_place(const char *symbol, uint64_t offset)
{
	return tdt__hash_bytes(tdt__hash_bytes(BY_PLACE, &offset, sizeof(offset)), symbol,
			       strlen(symbol));
}

/* --- The table ------------------------------------------------------------- */

#define NODE_KEY offsetof(struct keyed_node, node)

static const struct tdt_node *look_up_node(const struct joined *joined,
					   const struct tdt_node *anchor, uint64_t key)
{
	const struct keyed_node wanted = { .key = key, .anchor = anchor };
	uint32_t i = tdt__table_find(&joined->keyed_table, &wanted, NODE_KEY, sizeof wanted);

	return i != TDT__INDEX_NONE ? joined->keyed[i].node : NULL;
}

/* Enter `node` below `anchor`, unless the table has a node with that key there. */
static int enter_node(struct joined *joined, const struct tdt_node *anchor, uint64_t key,
		      const struct tdt_node *node)
{
	const struct keyed_node new = { .key = key, .anchor = anchor, .node = node };

	return tdt__table_note(&joined->keyed_table, &new, NODE_KEY, sizeof new) !=
			       TDT__INDEX_NONE
		   ? 0
		   : -ENOMEM;
}

/* Enter `node` for all nodes above from which a search reaches it. */
static int enter_below(struct joined *joined, uint64_t key, const struct tdt_node *node)
{
	const struct tdt_node *anchor = node;
	int err, n = 0;

	do {
		anchor = tdt_node_parent(anchor);
		err = enter_node(joined, anchor, key, node);
	} while (err == 0 && ++n < ANCHORS_MAX && may_lie_between(tdt_node_frame(anchor)));
	return err;
}

/* Enter an inlined function if it has the PC of the function it was inlined into. */
static int add_inlined(struct joined *joined, const struct tdt_node *node)
{
	const struct tdt_node *parent = tdt_node_parent(node);
	const struct tdt_frame *outer = tdt_node_frame(parent), *inner = tdt_node_frame(node);
	int err;

	if (inner->pc != outer->pc)
		return 0;
	err = enter_node(joined, parent, INLINED, node);
	if (err == 0 && inner->function != NULL && outer->function != NULL &&
	    strcmp(inner->function, outer->function) == 0)
		err = enter_node(joined, parent, INLINED_OF_THAT_NAME, node);
	return err;
}

static int index_node(struct joined *joined, const struct tdt_node *node)
{
	const struct tdt_frame *frame = tdt_node_frame(node);
	int err = 0;

	if (frame->kind == TDT_NODE_FRAME && frame->inlined)
		return add_inlined(joined, node);
	if (!is_function(frame))
		return 0;
	if (frame->pc != 0)
		err = enter_below(joined, by_pc(frame->pc), node);
	if (err == 0 && frame->symbol != NULL)
		err = enter_below(joined, by_place(frame->symbol, frame->symbol_offset), node);
	if (err == 0 && frame->symbol != NULL)
		err = enter_below(joined, by_name(frame->symbol), node);
	if (err == 0 && frame->function != NULL)
		err = enter_below(joined, by_name(frame->function), node);
	return err;
}

static int index_tree(struct joined *joined)
{
	const struct tdt_node *node = tdt_trace_root(joined->trace);
	int err = 0;

	while (err == 0 && (node = tdt_node_next(node)) != NULL)
		err = index_node(joined, node);
	joined->indexed = true;
	return err;
}

/* --- Searching ------------------------------------------------------------- */

/* Whether no node between `parent` and `node` is the frame itself. */
static bool is_first(const struct tdt_node *parent, const struct tdt_node *node,
		     const struct ustack_frame *frame)
{
	while ((node = tdt_node_parent(node)) != parent)
		if (same_address(tdt_node_frame(node), frame) ||
		    same_frame_name(tdt_node_frame(node), frame))
			return false;
	return true;
}

/*
 * The innermost of the functions that are inlined in `node` at the same address.  `key` says which
 * ones count: all of them, or only those that have the same name as well.  (Compilers may split a
 * function and inline the parts again, under the name of the whole function.)
 */
static const struct tdt_node *into_inlined(const struct joined *joined,
					   const struct tdt_node *node, uint64_t key)
{
	const struct tdt_node *inner;

	while ((inner = look_up_node(joined, node, key)) != NULL)
		node = inner;
	return node;
}

static const struct tdt_node *find_address(const struct joined *joined,
					   const struct tdt_node *parent,
					   const struct ustack_frame *frame)
{
	uint64_t key =
	    frame->name != NULL ? by_place(frame->name, frame->offset) : by_pc(frame->address);
	const struct tdt_node *node = look_up_node(joined, parent, key);

	return node != NULL && same_address(tdt_node_frame(node), frame) &&
		       is_first(parent, node, frame)
		   ? node
		   : NULL;
}

static const struct tdt_node *find_name(const struct joined *joined,
					const struct tdt_node *parent,
					const struct ustack_frame *frame, uint64_t key)
{
	const struct tdt_node *node = look_up_node(joined, parent, key);

	return node != NULL && same_frame_name(tdt_node_frame(node), frame) ? node : NULL;
}

/* Find by each part of the tracer's name that begins at `start` and ends where a tail begins. */
static const struct tdt_node *find_from(const struct joined *joined,
					const struct tdt_node *parent,
					const struct ustack_frame *frame, const char *start)
{
	const struct tdt_node *node = NULL;
	uint64_t key = BY_NAME;

	for (const char *at = start; *at != '\0' && node == NULL; at++) {
		if (at != start && is_tail(at))
			node = find_name(joined, parent, frame, key);
		key = tdt__hash_bytes(key, at, 1);
	}
	return node;
}

/*
 * Find by each part of the tracer's name that may be the name of the function.  The node is then
 * entered by the whole name, too, so that this search is made once for each name.
 */
static const struct tdt_node *find_within(struct joined *joined, const struct tdt_node *parent,
					  const struct ustack_frame *frame)
{
	bool is_long = strlen(frame->name) > WITHIN_MAX;
	const struct tdt_node *node = find_from(joined, parent, frame, frame->name);

	for (const char *at = frame->name;
	     node == NULL && !is_long && (at = strchr(at, ' ')) != NULL;)
		node = find_from(joined, parent, frame, ++at);
	if (node != NULL)
		/* If this fails, only time is lost. */
		enter_node(joined, parent, by_name(frame->name), node);
	return node;
}

/* Find the node of `frame`, which the function at `parent` called.  NULL: there is none. */
static const struct tdt_node *find_node(struct joined *joined, const struct tdt_node *parent,
				       const struct ustack_frame *frame)
{
	const struct tdt_node *node = find_address(joined, parent, frame);

	if (node != NULL)
		return into_inlined(joined, node, INLINED);
	if (frame->name == NULL)
		return NULL;
	node = find_name(joined, parent, frame, by_name(frame->name));
	if (node == NULL)
		node = find_within(joined, parent, frame);
	return node != NULL ? into_inlined(joined, node, INLINED_OF_THAT_NAME) : NULL;
}

/* --- The tree -------------------------------------------------------------- */

/* Add the tallies of the nodes that have none, before the node with the id `end`. */
static int add_tallies(struct joined *joined, size_t end)
{
	while (joined->tallies < end) {
		if (!tdt__array_grow(&joined->tally, joined->tallies, &joined->room,
				     sizeof(*joined->tally)))
			return -ENOMEM;
		joined->tally[joined->tallies++] = (struct tally){ 0 };
	}
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
	err = add_tallies(joined, tdt_node_id(node) + (size_t)1);
	return err == 0 ? index_node(joined, node) : err;
}

static int add_ustack_frame(struct joined *joined, const struct tdt_node **parent,
			    const struct ustack_frame *from)
{
	struct tdt_frame frame = { .size = sizeof(frame),
				   .kind = TDT_NODE_FRAME,
				   .pc = from->address };
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

static bool is_called(const struct ustack_frame *frame, const char *name)
{
	size_t n = strlen(name);

	return frame->name != NULL && plain_length(frame->name) == n &&
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
	int err = !joined->indexed ? index_tree(joined) : 0;

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
		next = find_node(joined, at, &stack->frame[i]);
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
	*joined = (struct joined){ .id = tdt_trace_info(trace)->id, .trace = trace };
	return add_tallies(joined, tdt_trace_root(trace)->tree->n);
}

void joined_fini(struct joined *joined)
{
	tdt__table_fini(&joined->keyed_table);
	tdt_trace_free(joined->trace);
	free(joined->tally);
	*joined = (struct joined){ 0 };
}
