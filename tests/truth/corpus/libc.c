// gcc -O0 -g : whole
// A function of glibc's: gdb calls it __GI_bsearch(), and shows its relative directory.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	truth_leaf_polled(state);
	truth_leaf_cloned(state, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

struct key {
	const struct tdt_future *child;
	struct tdt_context *cx;
	tdt_poll_t r;
};

static int compare(const void *key, const void *member)
{
	struct key *k = (void *)key;

	(void)member;
	k->r = tdt_future_poll(k->child, k->cx);
	return 0;
}

static tdt_poll_t search(const struct tdt_future *child, struct tdt_context *cx)
{
	struct key key = { child, cx, TDT_PANICKED };

	bsearch(&key, "", 1, 1, compare);
	return key.r;
}

static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;
	tdt_poll_t r = search(&children->child[0], cx);

	TDT_KEEP_FRAME();
	return r;
}

struct tdt_future truth_root(void)
{
	return truth_children_new(root_poll, 1,
				  truth_leaf_new(leaf_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED));
}
