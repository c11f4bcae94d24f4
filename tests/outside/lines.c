// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * What lines.sh builds with every compiler and level: async functions and combinators whose leaves
 * take a plain backtrace of themselves.  For each it prints the lines it wants (function:line, the
 * leaf first, main not) and the PCs it got; the script has the PCs looked up and compares.
 *
 * An await notes on its own source line where it stands, before it waits; a leaf keeps what was
 * noted on its way.
 */

#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>

#include <tdt/async.h>
#include <tdt/combine.h>

#define DEPTH_MAX 16
#define PCS_MAX 64

struct frame {
	const char *function;
	int line;
};

static struct frame noted[DEPTH_MAX];

#define NOTE(depth) (noted[depth] = (struct frame){ __func__, __LINE__ })
#define AWAIT(depth, future)                                                                       \
	do {                                                                                       \
		NOTE(depth);                                                                       \
		TDT_AWAIT(future);                                                                 \
	} while (0)

struct leaf {
	int depth;
	int polls; /* how often to be pending */
	struct frame want[DEPTH_MAX];
};

static tdt_poll_t leaf_poll(void *state, struct tdt_context *cx)
{
	struct leaf *leaf = state;
	void *pcs[PCS_MAX];
	int n;

	(void)cx;
	if (leaf->want[leaf->depth].function == NULL)
		for (int i = 0; i < leaf->depth; i++)
			leaf->want[i] = noted[i];
	leaf->want[leaf->depth] = (struct frame){ __func__, __LINE__ }, n = backtrace(pcs, PCS_MAX);
	printf("want");
	for (int i = leaf->depth; i >= 0; i--)
		printf(" %s:%d", leaf->want[i].function, leaf->want[i].line);
	printf("\npcs");
	for (int i = 0; i < n; i++)
		printf(" %p", (void *)((char *)pcs[i] - 1));
	printf("\n");
	return leaf->polls-- > 0 ? TDT_PENDING : TDT_READY;
}

static struct tdt_future leaf(int depth, int polls)
{
	struct leaf *leaf = calloc(1, sizeof(*leaf));

	leaf->depth = depth;
	leaf->polls = polls;
	return (struct tdt_future){ leaf, leaf_poll, free };
}

/* Two functions that differ in nothing but their lines. */
struct twin {
	struct tdt_async async;
	int depth;
};

static tdt_poll_t fiz_poll(void *state, struct tdt_context *cx)
{
	struct twin *twin = state;

	TDT_BEGIN(&twin->async, cx);
	AWAIT(twin->depth, leaf(twin->depth + 1, 1));
	TDT_END();
}

static tdt_poll_t buz_poll(void *state, struct tdt_context *cx)
{
	struct twin *twin = state;

	TDT_BEGIN(&twin->async, cx);
	AWAIT(twin->depth, leaf(twin->depth + 1, 1));
	TDT_END();
}

static struct tdt_future fiz(int depth)
{
	return TDT_ASYNC_NEW(fiz_poll, (struct twin){ .depth = depth });
}

static struct tdt_future buz(int depth)
{
	return TDT_ASYNC_NEW(buz_poll, (struct twin){ .depth = depth });
}

static struct tdt_future join(int depth)
{
	const struct tdt_future both[] = { fiz(depth + 1), buz(depth + 1) };

	noted[depth] = (struct frame){ "tdt_join_all", JOIN_LINE };
	return tdt_join_all(both, 2);
}

static struct tdt_future either(int depth)
{
	const struct tdt_future both[] = { buz(depth + 1), fiz(depth + 1) };

	noted[depth] = (struct frame){ "tdt_select", SELECT_LINE };
	return tdt_select(both, 2, NULL);
}

/* A combinator by hand that ends in the poll of its child. */
static tdt_poll_t last_poll(void *state, struct tdt_context *cx)
{
	return NOTE(1), tdt_future_poll(state, cx);
}

static void last_drop(void *state)
{
	tdt_future_drop(state);
	free(state);
}

static struct tdt_future last(void)
{
	struct tdt_future *child = malloc(sizeof(*child));

	*child = leaf(2, 1);
	return (struct tdt_future){ child, last_poll, last_drop };
}

/* Awaits that a compiler might make one, since they go on alike. */
struct foo {
	struct tdt_async async;
	int turn;
};

static tdt_poll_t foo_poll(void *state, struct tdt_context *cx)
{
	struct foo *foo = state;

	TDT_BEGIN(&foo->async, cx);
	for (foo->turn = 0; foo->turn < 4; foo->turn++) {
		if (foo->turn == 0) {
			AWAIT(0, leaf(1, 1));
		} else if (foo->turn == 1) {
			AWAIT(0, leaf(1, 1));
		} else if (foo->turn == 2) {
			AWAIT(0, leaf(1, 1));
		} else {
			AWAIT(0, leaf(1, 1));
		}
	}
	AWAIT(0, join(1));
	AWAIT(0, either(1));
	AWAIT(0, last());
	if (foo->turn == 4) {
		AWAIT(0, leaf(1, 1));
	} else {
		AWAIT(0, leaf(1, 1));
	}
	TDT_END();
}

int main(void)
{
	struct tdt_waker waker = { NULL };
	struct tdt_context cx = { &waker };
	struct tdt_future foo = TDT_ASYNC_NEW(foo_poll, (struct foo){ .turn = 0 });
	tdt_poll_t result;

	do
		result = tdt_future_poll(&foo, &cx);
	while (result == TDT_PENDING);
	tdt_future_drop(&foo);

	/* A combinator as a task of its own. */
	foo = join(0);
	while (tdt_future_poll(&foo, &cx) == TDT_PENDING)
		;
	tdt_future_drop(&foo);
	return result != TDT_READY;
}
