// gcc -O2 -g -fno-omit-frame-pointer : whole
// From outside, the frame pointer of a function that was reached by a jump is searched for on the
// stack.  The right place is behind a call of another function, and looks worse than another.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static __attribute__((noinline)) const struct tdt_waker *jumps(struct truth_leaf *leaf,
							       struct tdt_context *cx)
{
	truth_leaf_polled(leaf);
	return cx->waker->vtable->clone(cx->waker);
}

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	truth_leaf_cloned(state, jumps(state, cx));
	return TDT_PENDING;
}

static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;
	tdt_poll_t r = tdt_future_poll(&children->child[0], cx);

	TDT_KEEP_FRAME();
	return r;
}

struct tdt_future truth_root(void)
{
	return truth_children_new(root_poll, 1,
				  truth_leaf_new(leaf_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED));
}
