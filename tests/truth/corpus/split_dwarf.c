// gcc -O2 -g -gsplit-dwarf : whole
// Debug information in .dwo files is read.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	truth_leaf_polled(state);
	truth_leaf_cloned(state, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static inline tdt_poll_t one(const struct tdt_future *child, struct tdt_context *cx)
{
	tdt_poll_t r = tdt_future_poll(child, cx);

	TDT_KEEP_FRAME();
	return r;
}

static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;
	tdt_poll_t r = one(&children->child[0], cx);

	TDT_KEEP_FRAME();
	return r;
}

struct tdt_future truth_root(void)
{
	return truth_children_new(root_poll, 1,
				  truth_leaf_new(leaf_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED));
}
