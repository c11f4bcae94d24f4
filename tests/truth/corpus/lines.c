// gcc -O3 -g -fno-omit-frame-pointer -no-pie -fno-pie -flto : whole
// The call in few() is on a line that begins no statement: gdb passes over it.  And
// outer() is in the first file of the line table, whose name addr2line doesn't know.
#include "truth.h"

const unsigned truth_plain_polls = 0;

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	truth_leaf_polled(state);
	truth_leaf_cloned(state, tdt_waker_clone(cx->waker));
	return TDT_PENDING;
}

static __attribute__((noinline)) tdt_poll_t many(long a, long b, long c, long d, long e, long f,
						 long g, const struct tdt_future *child,
						 struct tdt_context *cx, int n)
{
	tdt_poll_t inner(int m)
	{
		tdt_poll_t p = m > 0 ? tdt_future_poll(child, cx) : TDT_PANICKED;

		n += m;
		return p;
	}
	tdt_poll_t r = inner(1);


	truth_use((char *)child + a + b + c + d + e + f + g);
	return r;
}

static tdt_poll_t few(const struct tdt_future *child, struct tdt_context *cx, int n)
{
	tdt_poll_t r;

	r = many(1, 2, 3, 4, 5, 6, 7, child, cx, n);
	TDT_KEEP_FRAME();
	return r;
}

static tdt_poll_t root_poll(void *state, struct tdt_context *cx)
{
	struct truth_children *children = state;
	int pending = 0;

	for (int i = 0; i < children->n; i++) {
		struct tdt_future *child = &children->child[i];
		tdt_poll_t r;

		if (tdt_future_is_none(child))
			continue;
		r = few(child, cx, 0);
		if (r == TDT_PENDING)
			pending++;
		else
			tdt_future_drop(child);
	}
	return pending != 0 ? TDT_PENDING : TDT_READY;
}

static __attribute__((noinline)) tdt_poll_t next(struct truth_children *children,
						 struct tdt_context *cx)
{
	tdt_poll_t r = tdt_future_poll(&children->child[0], cx);

	TDT_KEEP_FRAME();
	return r;
}

static __attribute__((noinline, optimize("O0"))) tdt_poll_t
outer(struct truth_children *children, struct tdt_context *cx)
{
	return next(children, cx);
}

static tdt_poll_t outer_poll(void *state, struct tdt_context *cx)
{
	tdt_poll_t r = outer(state, cx);

	TDT_KEEP_FRAME();
	return r;
}

static struct tdt_future middle(void)
{
	return truth_children_new(root_poll, 1,
				  truth_leaf_new(leaf_poll, TRUTH_FOR_EVER, TRUTH_EMPTIED));
}

struct tdt_future truth_root(void)
{
	return truth_children_new(outer_poll, 1, middle());
}
