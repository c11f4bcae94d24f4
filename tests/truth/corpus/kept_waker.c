// gcc -O2 -g : whole
// A leaf that is ready and leaves its waker in a resource looks as if it waited.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static tdt_poll_t first_poll(void *state, struct tdt_context *cx)
{
	struct truth_leaf *leaf = state;

	truth_leaf_polled(leaf);
	truth_leaf_cloned(leaf, tdt_waker_clone(cx->waker));
	return truth_leaf_ready(leaf) ? TDT_READY : TDT_PENDING;
}

static tdt_poll_t second_poll(void *state, struct tdt_context *cx)
{
	struct truth_leaf *leaf = state;

	truth_leaf_polled(leaf);
	truth_leaf_cloned(leaf, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

/* Written by hand: nothing in its names says that it goes on from one child to the next. */
static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;

	for (; children->step < children->n; children->step++)
		if (tdt_future_poll(&children->child[children->step], cx) == TDT_PENDING)
			return TDT_PENDING;
	return TDT_READY;
}

struct tdt_future truth_root(void)
{
	return truth_children_new(root_poll, 2, truth_leaf_new(first_poll, 1, TRUTH_KEPT),
				  truth_leaf_new(second_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED));
}
