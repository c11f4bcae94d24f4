// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Finds the node of a tracer's frame below a given node.
 *
 * Inlined functions and plumbing, which the tracer does not see, may lie between the two nodes.  So
 * each node is entered in a hash table for its parent, and for each node above the parent as long
 * as only such nodes lie between.  It is entered by its symbol and offset, by its names, and by its
 * PC.  If several nodes have the same key, only the first one is entered, and a frame belongs to
 * it.  A key is a hash, so the node that is found is compared with the frame.
 */

#include "cli/join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum {
	ANCHORS_MAX = 64, /* how many levels of plumbing a search goes through */
	WITHIN_MAX = 4096 /* a longer name is searched only from its beginning */
};

/* --- Names ----------------------------------------------------------------- */

size_t join_plain_length(const char *symbol)
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
	size_t n = join_plain_length(a);

	return n == join_plain_length(b) && strncmp(a, b, n) == 0;
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

/* Keys are hashed by FNV-1a, which begins with a different number for each kind of key. */
#define BY_PLACE UINT64_C(0xcbf29ce484222325)
#define BY_NAME UINT64_C(0x84222325cbf29ce4)
#define BY_PC UINT64_C(0x9ce484222325cbf2)
#define INLINED UINT64_C(1)
#define INLINED_OF_THAT_NAME UINT64_C(2)

static uint64_t hash_byte(uint64_t hash, char byte)
{
	return (hash ^ (unsigned char)byte) * UINT64_C(0x100000001b3);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t n)
{
	for (const char *at = bytes, *end = at + n; at < end; at++)
		hash = hash_byte(hash, *at);
	return hash;
}

static uint64_t by_name(const char *name)
{
	return hash_bytes(BY_NAME, name, join_plain_length(name));
}

static uint64_t by_pc(uint64_t pc)
{
	return hash_bytes(BY_PC, &pc, sizeof(pc));
}

static uint64_t by_place(const char *symbol, uint64_t offset)
{
	return hash_bytes(hash_bytes(BY_PLACE, &offset, sizeof(offset)), symbol, strlen(symbol));
}

/* --- The table ------------------------------------------------------------- */

struct keyed_node {
	uint64_t key;
	const struct tdt_node *anchor;
	const struct tdt_node *node; /* the first one below `anchor` that has this key */
};

static hashval_t hash_keyed(const void *entry)
{
	const struct keyed_node *it = entry;
	uint64_t mixed = (it->key + (uintptr_t)it->anchor) * UINT64_C(0x9e3779b97f4a7c15);

	return (hashval_t)(mixed >> 32);
}

static int same_keyed(const void *left, const void *right)
{
	const struct keyed_node *a = left, *b = right;

	return a->key == b->key && a->anchor == b->anchor;
}

/* Enter `node` below `anchor`, unless the table has a node with that key there. */
static int enter_node(struct join_index *index, const struct tdt_node *anchor, uint64_t key,
		      const struct tdt_node *node)
{
	struct keyed_node *entry = malloc(sizeof(*entry));
	void **slot;

	if (entry == NULL)
		return -ENOMEM;
	*entry = (struct keyed_node){ .key = key, .anchor = anchor, .node = node };
	slot = htab_find_slot(index->nodes, entry, INSERT);
	if (slot != NULL && *slot == NULL)
		*slot = entry;
	else
		free(entry);
	return slot != NULL ? 0 : -ENOMEM;
}

static const struct tdt_node *look_up_node(const struct join_index *index,
					   const struct tdt_node *anchor, uint64_t key)
{
	struct keyed_node sought = { .key = key, .anchor = anchor };
	const struct keyed_node *found = htab_find(index->nodes, &sought);

	return found != NULL ? found->node : NULL;
}

/* Enter `node` for all nodes above from which a search reaches it. */
static int enter_below(struct join_index *index, uint64_t key, const struct tdt_node *node)
{
	const struct tdt_node *anchor = node;
	int err, n = 0;

	do {
		anchor = tdt_node_parent(anchor);
		err = enter_node(index, anchor, key, node);
	} while (err == 0 && ++n < ANCHORS_MAX && may_lie_between(tdt_node_frame(anchor)));
	return err;
}

/* Enter an inlined function if it has the PC of the function it was inlined into. */
static int add_inlined(struct join_index *index, const struct tdt_node *node)
{
	const struct tdt_node *parent = tdt_node_parent(node);
	const struct tdt_frame *outer = tdt_node_frame(parent), *inner = tdt_node_frame(node);
	int err;

	if (inner->pc != outer->pc)
		return 0;
	err = enter_node(index, parent, INLINED, node);
	if (err == 0 && inner->function != NULL && outer->function != NULL &&
	    strcmp(inner->function, outer->function) == 0)
		err = enter_node(index, parent, INLINED_OF_THAT_NAME, node);
	return err;
}

int join_index_add(struct join_index *index, const struct tdt_node *node)
{
	const struct tdt_frame *frame = tdt_node_frame(node);
	int err = 0;

	if (frame->kind == TDT_NODE_FRAME && frame->inlined)
		return add_inlined(index, node);
	if (!is_function(frame))
		return 0;
	if (frame->pc != 0)
		err = enter_below(index, by_pc(frame->pc), node);
	if (err == 0 && frame->symbol != NULL)
		err = enter_below(index, by_place(frame->symbol, frame->symbol_offset), node);
	if (err == 0 && frame->symbol != NULL)
		err = enter_below(index, by_name(frame->symbol), node);
	if (err == 0 && frame->function != NULL)
		err = enter_below(index, by_name(frame->function), node);
	return err;
}

int join_index_init(struct join_index *index, const struct tdt_node *root)
{
	const struct tdt_node *node = root;
	int err = 0;

	index->nodes = htab_create_alloc(64, hash_keyed, same_keyed, free, calloc, free);
	if (index->nodes == NULL)
		return -ENOMEM;
	while (err == 0 && (node = tdt_node_next(node)) != NULL)
		err = join_index_add(index, node);
	return err;
}

void join_index_fini(struct join_index *index)
{
	if (index->nodes != NULL)
		htab_delete(index->nodes);
	index->nodes = NULL;
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
static const struct tdt_node *into_inlined(const struct join_index *index,
					   const struct tdt_node *node, uint64_t key)
{
	const struct tdt_node *inner;

	while ((inner = look_up_node(index, node, key)) != NULL)
		node = inner;
	return node;
}

static const struct tdt_node *find_address(const struct join_index *index,
					   const struct tdt_node *parent,
					   const struct ustack_frame *frame)
{
	uint64_t key =
	    frame->name != NULL ? by_place(frame->name, frame->offset) : by_pc(frame->address);
	const struct tdt_node *node = look_up_node(index, parent, key);

	return node != NULL && same_address(tdt_node_frame(node), frame) &&
		       is_first(parent, node, frame)
		   ? node
		   : NULL;
}

static const struct tdt_node *find_name(const struct join_index *index,
					const struct tdt_node *parent,
					const struct ustack_frame *frame, uint64_t key)
{
	const struct tdt_node *node = look_up_node(index, parent, key);

	return node != NULL && same_frame_name(tdt_node_frame(node), frame) ? node : NULL;
}

/* Find by each part of the tracer's name that begins at `start` and ends where a tail begins. */
static const struct tdt_node *find_from(const struct join_index *index,
					const struct tdt_node *parent,
					const struct ustack_frame *frame, const char *start)
{
	const struct tdt_node *node = NULL;
	uint64_t key = BY_NAME;

	for (const char *at = start; *at != '\0' && node == NULL; at++) {
		if (at != start && is_tail(at))
			node = find_name(index, parent, frame, key);
		key = hash_byte(key, *at);
	}
	return node;
}

/*
 * Find by each part of the tracer's name that may be the name of the function.  The node is then
 * entered by the whole name, too, so that this search is made once for each name.
 */
static const struct tdt_node *find_within(struct join_index *index, const struct tdt_node *parent,
					  const struct ustack_frame *frame)
{
	bool is_long = strlen(frame->name) > WITHIN_MAX;
	const struct tdt_node *node = find_from(index, parent, frame, frame->name);

	for (const char *at = frame->name;
	     node == NULL && !is_long && (at = strchr(at, ' ')) != NULL;)
		node = find_from(index, parent, frame, ++at);
	if (node != NULL)
		/* If this fails, only time is lost. */
		enter_node(index, parent, by_name(frame->name), node);
	return node;
}

const struct tdt_node *join_index_find(struct join_index *index, const struct tdt_node *parent,
				       const struct ustack_frame *frame)
{
	const struct tdt_node *node = find_address(index, parent, frame);

	if (node != NULL)
		return into_inlined(index, node, INLINED);
	if (frame->name == NULL)
		return NULL;
	node = find_name(index, parent, frame, by_name(frame->name));
	if (node == NULL)
		node = find_within(index, parent, frame);
	return node != NULL ? into_inlined(index, node, INLINED_OF_THAT_NAME) : NULL;
}
