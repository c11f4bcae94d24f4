// gcc -O2 -g : whole
// After a poll the library clones the waker itself, on no stack of the program's.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static tdt_poll_t first_poll(void *state, struct tdt_context *cx)
{
	struct truth_leaf *leaf = state;

	truth_leaf_polled(leaf);
	truth_leaf_cloned(leaf, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

/* It is ready without a clone, so that truth_leaf_now is this leaf when the library clones. */
static tdt_poll_t second_poll(void *state, struct tdt_context *cx)
{
	struct truth_leaf *leaf = state;

	(void)cx;
	truth_leaf_polled(leaf);
	return truth_leaf_ready(leaf) ? TDT_READY : TDT_PENDING;
}

static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;
	tdt_poll_t first = tdt_future_poll(&children->child[0], cx);

	tdt_future_poll(&children->child[1], cx);
	return first;
}

struct tdt_future truth_root(void)
{
	return truth_children_new(root_poll, 2,
				  truth_leaf_new(first_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED),
				  truth_leaf_new(second_poll, 0, TRUTH_EMPTIED));
}
