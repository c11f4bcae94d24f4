// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Which frames are shown, for a reader who wants to see the code of the program.
 *
 * fold.c decides on the code of libraries.  Plumbing, which means the frames of libtdt and
 * libtdt-rt, is hidden, with three exceptions:
 *   - The innermost public call below which no user code runs is shown, because it says what is
 *     waited for: tdt_mutex_lock below `worker_poll`.  The functions that this call is made of are
 *     hidden, since their names are not public, and so are the helpers of our headers.
 *   - Plumbing that branches is shown, because it gives the tree its shape.  Helpers are still
 *     hidden: the function they were inlined into is the one that branches.
 *   - A leaf is shown if only plumbing leads to it, and none of that is such a call.  Otherwise
 *     nothing of it would be seen.
 * Leaves that wait in hidden frames are counted for the nearest shown frame above.
 *
 * The ids of a node's children are greater than the node's own id.  So a loop over rising ids goes
 * down the tree, and a loop over falling ids goes up.
 */

#include "view.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "fold.h"
#include "origin.h"
#include "tree/tree.h"

struct mark {
	uint32_t ways; /* that lead on: shown nodes below, leaves here or in hidden nodes below */
	uint32_t row;  /* of the node if it is shown, else of the nearest shown node above */
	bool plumbing;
	bool helper;
	bool users;      /* user code is below */
	bool call;       /* the innermost public call below which no user code runs */
	bool call_below; /* such a call is below */
	bool bare;       /* from the task to here there is only plumbing, and no such call */
	bool shown;
};

const struct tdt_node **tdt__nodes_by_id(const struct tdt_node *root, uint32_t *n)
{
	const struct tdt_node **nodes = calloc(root->tree->n, sizeof(const struct tdt_node *));

	*n = root->tree->n;
	for (const struct tdt_node *node = root; node != NULL && nodes != NULL;
	     node = tdt_node_next(node))
		nodes[tdt_node_id(node)] = node;
	return nodes;
}

/*
 * Whether plumbing is a helper: a function of our public headers that is always inlined, such as
 * tdt_future_poll(), or a function between a coroutine and its poller, which is the same for all
 * coroutines that are polled there.
 */
static bool is_helper(const struct tdt_frame *frame)
{
	size_t length = frame->file == NULL ? 0 : strlen(frame->file);

	if (frame->function != NULL && tdt__starts_with(frame->function, "tdt__coroutine_"))
		return true;
	return length > 2 && strstr(frame->file, "/tdt/") != NULL &&
	       strcmp(frame->file + length - 2, ".h") == 0;
}

/*
 * Whether plumbing has the name of a public call.  The compiler may have added a suffix, such as
 * .constprop.0.  The list has prefixes of names that are not calls of users.  Some are those of
 * helpers, which is_helper() finds only by their file; a program without debug information has no
 * files.
 */
static bool is_public(const struct tdt_frame *frame)
{
	static const char *const inner[] = { "tdt_substitute_", "tdt_probe_", "tdt_async_",
					     "tdt_future_", "tdt_waker_" };

	if (frame->function == NULL || !tdt__starts_with(frame->function, "tdt_") ||
	    strstr(frame->function, "__") != NULL)
		return false;
	for (size_t i = 0; i < sizeof(inner) / sizeof(inner[0]); i++)
		if (tdt__starts_with(frame->function, inner[i]))
			return false;
	return true;
}

static void mark_plumbing(const struct tdt_node **nodes, struct mark *mark, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++) {
		mark[i].plumbing = tdt__is_plumbing(tdt_node_frame(nodes[i]));
		mark[i].helper = mark[i].plumbing && is_helper(tdt_node_frame(nodes[i]));
	}
}

static void mark_calls(const struct tdt_node **nodes, struct mark *mark, uint32_t n)
{
	for (uint32_t i = n; i-- > 1;) {
		struct mark *own = &mark[i],
			    *parent = &mark[tdt_node_id(tdt_node_parent(nodes[i]))];

		own->call = own->plumbing && !own->helper && !own->users && !own->call_below &&
			    is_public(tdt_node_frame(nodes[i]));
		parent->users |= !own->plumbing || own->users;
		parent->call_below |= own->call || own->call_below;
	}
	mark[0].bare = true;
	for (uint32_t i = 1; i < n; i++)
		mark[i].bare = mark[i].plumbing && !mark[i].call &&
			       mark[tdt_node_id(tdt_node_parent(nodes[i]))].bare;
}

static bool is_shown(const struct mark *mark, enum tdt__fold fold, bool branches, bool leaf)
{
	if (fold != TDT__FOLD_KEEP)
		return fold == TDT__FOLD_OPERATION;
	return !mark->plumbing || mark->call || branches || (mark->bare && leaf);
}

static void mark_shown(const struct tdt_node **nodes, struct mark *mark, uint32_t n, bool plumbing,
		       const struct tdt__folded *folded)
{
	for (uint32_t i = n; i-- > 1;) {
		struct mark *parent = &mark[tdt_node_id(tdt_node_parent(nodes[i]))];
		bool leaf = tdt_node_leaves(nodes[i]) > 0, branches;

		mark[i].ways += leaf;
		branches = mark[i].ways > 1 && !mark[i].helper;
		mark[i].shown = (plumbing && mark[i].plumbing) ||
				is_shown(&mark[i], folded != NULL ? folded[i].fold : TDT__FOLD_KEEP,
					 branches, leaf);
		parent->ways += mark[i].shown ? 1 : mark[i].ways;
	}
	mark[0].shown = true;
}

static uint32_t add_row(struct tdt__view *view, const struct tdt_node *node, uint32_t parent,
			uint32_t depth)
{
	view->row[view->n] = (struct tdt__row){ .node = node, .parent = parent, .depth = depth };
	return view->n++;
}

/*
 * The row that stands for the frames below the depth limit, under row `at`.  If there is one, it is
 * the last row, because rows are in depth-first order; otherwise it is added.
 */
static uint32_t row_below(struct tdt__view *view, uint32_t at)
{
	uint32_t last = view->n - 1;

	if (view->row[at].node == NULL)
		return at;
	if (view->row[last].node == NULL && view->row[last].parent == at)
		return last;
	return add_row(view, NULL, at, view->row[at].depth + 1);
}

static void make_rows(struct tdt__view *view, const struct tdt_node *root, struct mark *mark,
		      uint32_t max_depth, const struct tdt__folded *folded)
{
	add_row(view, root, 0, 0);
	for (const struct tdt_node *node = tdt_node_next(root); node != NULL;
	     node = tdt_node_next(node)) {
		struct mark *own = &mark[tdt_node_id(node)];
		uint32_t above = mark[tdt_node_id(tdt_node_parent(node))].row;
		uint32_t depth = view->row[above].depth + 1;

		if (!own->shown) {
			own->row = above;
		} else if (max_depth == 0 || depth <= max_depth) {
			own->row = add_row(view, node, above, depth);
		} else {
			own->row = row_below(view, above);
			view->row[own->row].frames++;
		}
		view->row[own->row].leaves += tdt_node_leaves(node);
		view->row[own->row].hides_futures |=
		    folded != NULL && folded[tdt_node_id(node)].hides_futures;
	}
}

int tdt__view_make(struct tdt__view *view, const struct tdt_node *root,
		   const struct tdt_print_options *options, const struct tdt__folded *folded)
{
	int err = -ENOMEM;
	uint32_t n;
	const struct tdt_node **nodes = tdt__nodes_by_id(root, &n);
	struct mark *mark;

	*view = (struct tdt__view){ 0 };
	if (nodes == NULL)
		return -ENOMEM;
	mark = calloc(n, sizeof(*mark));
	/* At most one row for each node: a row without a node stands for one node or more. */
	*view = (struct tdt__view){ .row = calloc(n, sizeof(*view->row)) };
	if (mark != NULL && view->row != NULL) {
		mark_plumbing(nodes, mark, n);
		mark_calls(nodes, mark, n);
		mark_shown(nodes, mark, n, options->plumbing != 0, folded);
		make_rows(view, root, mark, options->max_depth, folded);
		err = 0;
	} else {
		free(view->row);
		*view = (struct tdt__view){ 0 };
	}
	free(mark);
	free(nodes);
	return err;
}
