// gcc -O2 -g -fno-omit-frame-pointer : whole
// From outside, the frame pointer of a function that was called by a pointer is searched for on the
// stack.  The way from the right place goes through a tail call, and looks worse than another.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	struct truth_leaf *leaf = state;

	truth_leaf_polled(leaf);
	truth_leaf_cloned(leaf, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static __attribute__((noinline)) tdt_poll_t last(const struct tdt_future *child,
						 struct tdt_context *cx)
{
	tdt_poll_t r = tdt_future_poll(child, cx);

	TDT_KEEP_FRAME();
	return r;
}

static __attribute__((noinline)) tdt_poll_t jumps(struct truth_children *children,
						  struct tdt_context *cx)
{
	return last(&children->child[0], cx);
}

static tdt_poll_t child_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t r = jumps(state, cx);

	TDT_KEEP_FRAME();
	return r;
}

static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;
	tdt_poll_t r[2] = { tdt_future_poll(&children->child[0], cx),
			    tdt_future_poll(&children->child[1], cx) };

	return r[0] == TDT_READY ? r[1] : TDT_PENDING;
}

static struct tdt_future child(void)
{
	return truth_children_new(child_poll, 1,
				  truth_leaf_new(leaf_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED));
}

struct tdt_future truth_root(void)
{
	return truth_children_new(root_poll, 2, child(), child());
}
