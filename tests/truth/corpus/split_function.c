// gcc -O2 -g : whole
// gcc makes a function of a half of leaf_poll(), and says that it is inlined into itself.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static int polled[3];

/* Pending once, as the leaf that README has. */
static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	struct truth_leaf *leaf = state;

	if (polled[0])
		return TDT_READY;
	polled[1] = 1;
	truth_leaf_polled(leaf);
	truth_leaf_cloned(leaf, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;

	tdt_future_poll(&children->child[1], cx);
	if (tdt_future_poll(&children->child[0], cx) != TDT_PENDING)
		return TDT_READY;
	return TDT_PENDING;
}

struct tdt_future truth_root(void)
{
	return truth_children_new(root_poll, 2,
				  truth_leaf_new(leaf_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED),
				  truth_leaf_new(leaf_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED));
}
