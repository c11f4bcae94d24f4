// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Covers tree/over.  No leaf that waits is taken for one that is over.  Tasks are made up at random
 * of async functions, combinators of the library's and by hand, one whose last call is a jump, and
 * coroutines.  In the poll that is captured some leaves are ready after they have cloned the waker.
 * Each says whether it waits, and the tree must have as many of its kind.
 */

#include "lib/poll_now.h"
#include "lib/test.h"

#define KINDS 5
#define MOST 3 /* children of one */

static unsigned state_of_chance;
static bool captured; /* the poll at hand; in the one before it nothing is ready */
static uint32_t waiting[KINDS];

/* --- Leaves ------------------------------------------------------------------------- */

struct leaf {
	unsigned kind;
	int ready; /* polls of the captured one that find it so */
	bool waits;
};

static __attribute__((noinline)) tdt_poll_t end_of(struct leaf *leaf)
{
	bool waits = !captured || leaf->ready == 0;

	waiting[leaf->kind] -= leaf->waits;
	leaf->waits = waits;
	waiting[leaf->kind] += waits;
	return waits ? TDT_PENDING : TDT_READY;
}

static void leaf_drop(void *state)
{
	struct leaf *leaf = state;

	waiting[leaf->kind] -= leaf->waits;
	free(leaf);
}

#define LEAF(name)                                                                                 \
	static __attribute__((noinline)) tdt_poll_t name(void *state, struct tdt_context *cx)      \
	{                                                                                          \
		tdt_waker_drop(tdt_waker_clone(cx->waker));                                        \
		TDT_KEEP_FRAME();                                                                  \
		return end_of(state);                                                              \
	}

LEAF(leaf_0)
LEAF(leaf_1)
LEAF(leaf_2)
LEAF(leaf_3)

/* To be woken by either of two. */
static __attribute__((noinline)) tdt_poll_t leaf_4(void *state, struct tdt_context *cx)
{
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	tdt_waker_drop(tdt_waker_clone(cx->waker));
	TDT_KEEP_FRAME();
	return end_of(state);
}

static struct tdt_future make_leaf(void)
{
	static tdt_poll_t (*const polls[KINDS])(
	    void *, struct tdt_context *) = { leaf_0, leaf_1, leaf_2, leaf_3, leaf_4 };
	struct leaf *leaf = calloc(1, sizeof *leaf);

	ck_assert_ptr_nonnull(leaf);
	leaf->kind = random_below(&state_of_chance, KINDS);
	leaf->ready = random_below(&state_of_chance, 2);
	return (struct tdt_future){ leaf, polls[leaf->kind], leaf_drop };
}

/* --- Polling them -------------------------------------------------------------------- */

struct some {
	struct tdt_async async;
	struct tdt_future child[MOST];
	unsigned n, at;
	struct some *next; /* of the coroutines' */
};

static struct some
    *in_coroutines; /* freed with the task: a coroutine that never ran has not seen its own */

static void drop_children(void *state)
{
	struct some *some = state;

	for (unsigned i = 0; i < some->n; i++)
		tdt_future_drop(&some->child[i]);
}

static struct tdt_future take(struct some *some)
{
	struct tdt_future taken = some->child[some->at];

	some->child[some->at++] = TDT_FUTURE_NONE;
	return taken;
}

/* One place for all, and a place for each. */
static tdt_poll_t loop_poll(void *state, struct tdt_context *cx)
{
	struct some *some = state;

	TDT_BEGIN(&some->async, cx);
	while (some->at < some->n)
		TDT_AWAIT(take(some));
	TDT_END();
}

static tdt_poll_t each_poll(void *state, struct tdt_context *cx)
{
	struct some *some = state;

	TDT_BEGIN(&some->async, cx);
	if (some->at < some->n)
		TDT_AWAIT(take(some));
	if (some->at < some->n)
		TDT_AWAIT(take(some));
	if (some->at < some->n)
		TDT_AWAIT(take(some));
	TDT_END();
}

/* All, by hand; the others return before the last, whose poll may become a jump. */
static tdt_poll_t poll_child(struct tdt_future *child, struct tdt_context *cx)
{
	tdt_poll_t polled = TDT_READY;

	if (!tdt_future_is_none(child))
		polled = tdt_future_poll(child, cx);
	TDT_KEEP_FRAME();
	if (polled != TDT_PENDING)
		tdt_future_drop(child);
	return polled;
}

static tdt_poll_t all_poll(void *state, struct tdt_context *cx)
{
	struct some *some = state;
	tdt_poll_t result = TDT_READY;

	for (unsigned i = 0; i < some->n; i++)
		if (poll_child(&some->child[i], cx) == TDT_PENDING)
			result = TDT_PENDING;
	return result;
}

static tdt_poll_t jump_poll(void *state, struct tdt_context *cx)
{
	struct some *some = state;

	for (unsigned i = 0; i + 1 < some->n; i++)
		if (poll_child(&some->child[i], cx) == TDT_READY)
			return TDT_READY;
	return some->child[some->n - 1].poll(some->child[some->n - 1].state, cx);
}

static tdt_poll_t pass_poll(void *state, struct tdt_context *cx)
{
	struct some *some = state;

	return tdt_future_poll(&some->child[0], cx);
}

static void some_drop(void *state)
{
	drop_children(state);
	free(state);
}

static struct tdt_future by_hand(const struct some *some,
				 tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	struct some *copy = malloc(sizeof *copy);

	ck_assert_ptr_nonnull(copy);
	*copy = *some;
	return (struct tdt_future){ copy, poll, some_drop };
}

static __attribute__((noinline)) int await_next(struct some *some)
{
	int error = tdt_co_await(take(some));

	TDT_KEEP_FRAME();
	return error;
}

static int co_each(void *arg)
{
	struct some *some = arg;
	int error = 0;

	if (some->at < some->n)
		error = tdt_co_await(take(some));
	while (error == 0 && some->at < some->n)
		error = await_next(some);
	return error;
}

static struct tdt_future coroutine(const struct some *some)
{
	struct some *copy = malloc(sizeof *copy);
	struct tdt_future future;

	ck_assert_ptr_nonnull(copy);
	*copy = *some;
	copy->next = in_coroutines;
	in_coroutines = copy;
	future = tdt_coroutine(co_each, copy, NULL);
	ck_assert(!tdt_future_is_none(&future));
	return future;
}

static void free_coroutines(void)
{
	while (in_coroutines != NULL) {
		struct some *next = in_coroutines->next;

		some_drop(in_coroutines);
		in_coroutines = next;
	}
}

static struct tdt_future make(unsigned depth)
{
	struct some some = { .async.fini = drop_children,
			     .n = 1 + random_below(&state_of_chance, MOST) };

	if (depth == 0 || random_below(&state_of_chance, 4) == 0)
		return make_leaf();
	for (unsigned i = 0; i < some.n; i++)
		some.child[i] = make(depth - 1);
	switch (random_below(&state_of_chance, 8)) {
	case 0:
		return tdt_join_all(some.child, some.n);
	case 1:
		return tdt_select(some.child, some.n, NULL);
	case 2:
		return by_hand(&some, all_poll);
	case 3:
		return by_hand(&some, jump_poll);
	case 4:
		return by_hand(&some, pass_poll);
	case 5:
		return coroutine(&some);
	case 6:
		return TDT_ASYNC_NEW(loop_poll, some);
	default:
		return TDT_ASYNC_NEW(each_poll, some);
	}
}

/* --- Comparing ------------------------------------------------------------------------------- */

static unsigned kind_of(const struct tdt_node *node)
{
	for (; node != NULL; node = tdt_node_parent(node)) {
		const char *function = tdt_node_frame(node)->function;

		if (function != NULL && strncmp(function, "leaf_", 5) == 0)
			return (unsigned)(function[5] - '0');
	}
	ck_abort_msg("a leaf that is none");
}

static void expect_those_that_wait(const struct tdt_trace *trace, unsigned number)
{
	uint32_t in_tree[KINDS] = { 0 };

	for (const struct tdt_node *node = tdt_trace_root(trace); node != NULL;
	     node = tdt_node_next(node))
		if (tdt_node_leaves(node) > 0)
			in_tree[kind_of(node)] += tdt_node_leaves(node);
	for (unsigned i = 0; i < KINDS; i++)
		if (in_tree[i] < waiting[i]) {
			tdt_trace_print(trace, stderr);
			ck_abort_msg("task %u: %u of %u leaves of kind %u", number, in_tree[i],
				     waiting[i], i);
		}
}

CASE(leaves)

TEST(no_leaf_that_waits_is_left_out)
{
	unsigned seen = 0;

	state_of_chance = seed_of_run();
	for (unsigned number = 0; number < 3000; number++) {
		struct poll_now task;
		struct tdt_trace *trace;

		memset(waiting, 0, sizeof waiting);
		captured = false;
		poll_now_start(&task, make(5));
		if (task.result == TDT_PENDING) {
			captured = true;
			trace = poll_now_ask(&task, 0);
			if (task.result == TDT_PENDING) {
				expect_those_that_wait(trace, number);
				seen++;
			}
			tdt_trace_free(trace);
		}
		captured = false;
		poll_now_end(&task);
		free_coroutines();
	}
	ck_assert_uint_gt(seen, 100);
}
