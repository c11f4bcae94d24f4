// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The shapes in C. */

#include <stdlib.h>

#include "shapes.h"

struct body {
	struct tdt_async async;
	unsigned round;
};

static struct tdt_future body(tdt_poll_t (*poll)(void *state, struct tdt_context *cx))
{
	return TDT_ASYNC_NEW(poll, (struct body){ .round = 0 });
}

/* --- One after the other ------------------------------------------------------ */

static tdt_poll_t sequence_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(leaf_1());
	TDT_AWAIT(leaf_2());
	TDT_END();
}

static struct tdt_future sequence(void)
{
	return body(sequence_poll);
}

static tdt_poll_t rounds_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	for (; it->round < 4; it->round++)
		TDT_AWAIT(leaf_1());
	TDT_END();
}

static struct tdt_future rounds(void)
{
	return body(rounds_poll);
}

static tdt_poll_t nested_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(sequence());
	TDT_AWAIT(rounds());
	TDT_AWAIT(leaf_3());
	TDT_END();
}

static struct tdt_future nested(void)
{
	return body(nested_poll);
}

static tdt_poll_t duplex_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(leaf_9());
	TDT_AWAIT(leaf_9());
	TDT_END();
}

static struct tdt_future duplex(void)
{
	return body(duplex_poll);
}

static tdt_poll_t helped_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(leaf_8());
	TDT_AWAIT(leaf_8());
	TDT_END();
}

static struct tdt_future helped(void)
{
	return body(helped_poll);
}

/* --- Side by side -------------------------------------------------------------- */

static tdt_poll_t other_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(leaf_3());
	TDT_AWAIT(leaf_4());
	TDT_END();
}

static struct tdt_future other(void)
{
	return body(other_poll);
}

static struct tdt_future join_two(void)
{
	return tdt_join_all((struct tdt_future[]){ sequence(), other() }, 2);
}

static struct tdt_future select_two(void)
{
	return tdt_select((struct tdt_future[]){ sequence(), other() }, 2, NULL);
}

static tdt_poll_t joins_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(join_two());
	TDT_AWAIT(leaf_5());
	TDT_END();
}

static struct tdt_future join_then(void)
{
	return body(joins_poll);
}

/* The loser comes first, so that it registers before the winner is found. */
static struct tdt_future race(void)
{
	return tdt_select((struct tdt_future[]){ leaf_2(), leaf_1() }, 2, NULL);
}

static tdt_poll_t races_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	for (; it->round < 4; it->round++)
		TDT_AWAIT(race());
	TDT_END();
}

static struct tdt_future select_loop(void)
{
	return body(races_poll);
}

/* One that is polled in each round, and is there in the next. */
struct refers {
	struct tdt_async async;
	struct tdt_future held;
	size_t winner;
};

static void not_dropped(void *state)
{
	(void)state;
}

static tdt_poll_t held_poll(void *state, struct tdt_context *cx)
{
	return tdt_future_poll(state, cx);
}

static struct tdt_future race_held(struct refers *it)
{
	struct tdt_future held = { &it->held, held_poll, not_dropped };

	return tdt_select((struct tdt_future[]){ held, leaf_1() }, 2, &it->winner);
}

static tdt_poll_t refers_poll(void *state, struct tdt_context *cx)
{
	struct refers *it = state;

	TDT_BEGIN(&it->async, cx);
	it->held = leaf_2();
	do
		TDT_AWAIT(race_held(it));
	while (it->winner != 0);
	TDT_END();
}

static void refers_fini(void *state)
{
	struct refers *it = state;

	tdt_future_drop(&it->held);
}

static struct tdt_future select_held(void)
{
	return TDT_ASYNC_NEW(refers_poll, (struct refers){ .async.fini = refers_fini });
}

static tdt_poll_t loser_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(race());
	TDT_AWAIT(leaf_3());
	TDT_END();
}

static struct tdt_future loser(void)
{
	return body(loser_poll);
}

static struct tdt_future many(struct tdt_future (*make)(void))
{
	return tdt_join_all((struct tdt_future[]){ make(), make(), make(), make() }, 4);
}

static struct tdt_future join_all_twice(void)
{
	return many(sequence);
}

static tdt_poll_t three_poll(void *state, struct tdt_context *cx)
{
	struct body *it = state;

	TDT_BEGIN(&it->async, cx);
	TDT_AWAIT(leaf_1());
	TDT_AWAIT(leaf_2());
	TDT_AWAIT(leaf_3());
	TDT_END();
}

static struct tdt_future three(void)
{
	return body(three_poll);
}

static struct tdt_future join_all_different(void)
{
	return tdt_join_all((struct tdt_future[]){ three(), three(), three() }, 3);
}

/* --- Boxes --------------------------------------------------------------------- */

static tdt_poll_t box_poll(void *state, struct tdt_context *cx)
{
	return tdt_future_poll(state, cx);
}

static void box_drop(void *state)
{
	tdt_future_drop(state);
	free(state);
}

static struct tdt_future boxed(struct tdt_future future)
{
	struct tdt_future *box = malloc(sizeof(*box));

	if (box == NULL)
		abort();
	*box = future;
	return (struct tdt_future){ box, box_poll, box_drop };
}

static struct tdt_future boxed_sequence(void)
{
	return boxed(sequence());
}

static struct tdt_future join_all_boxed(void)
{
	return boxed(many(boxed_sequence));
}

static struct tdt_future select_all_boxed(void)
{
	return boxed(tdt_select(
	    (struct tdt_future[]){ boxed(sequence()), boxed(other()), boxed(three()) }, 3, NULL));
}

/* --- Written by hand ------------------------------------------------------------- */

struct pair {
	struct tdt_future arm[2];
	struct tdt_future last;
};

static void pair_drop(void *state)
{
	struct pair *pair = state;

	tdt_future_drop(&pair->arm[0]);
	tdt_future_drop(&pair->arm[1]);
	tdt_future_drop(&pair->last);
	free(pair);
}

static struct tdt_future pair(tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
			      struct pair arms)
{
	struct pair *pair = malloc(sizeof(*pair));

	if (pair == NULL)
		abort();
	*pair = arms;
	return (struct tdt_future){ pair, poll, pair_drop };
}

/* Two arms, each polled at a place of its own. */
static inline __attribute__((always_inline)) tdt_poll_t join_inlined(struct pair *pair,
								     struct tdt_context *cx)
{
	if (!tdt_future_is_none(&pair->arm[0]) && tdt_future_poll(&pair->arm[0], cx) == TDT_READY)
		tdt_future_drop(&pair->arm[0]);
	if (!tdt_future_is_none(&pair->arm[1]) && tdt_future_poll(&pair->arm[1], cx) == TDT_READY)
		tdt_future_drop(&pair->arm[1]);
	return tdt_future_is_none(&pair->arm[0]) && tdt_future_is_none(&pair->arm[1]) ? TDT_READY
										      : TDT_PENDING;
}

static tdt_poll_t parent_poll(void *state, struct tdt_context *cx)
{
	return join_inlined(state, cx);
}

static struct tdt_future inlined_join(void)
{
	return pair(parent_poll, (struct pair){ { sequence(), other() }, TDT_FUTURE_NONE });
}

/* Both arms polled at one place, as only a loop does. */
static tdt_poll_t join_looped(void *state, struct tdt_context *cx)
{
	struct pair *pair = state;
	bool pending = false;

	for (int i = 0; i < 2; i++) {
		if (!tdt_future_is_none(&pair->arm[i]) &&
		    tdt_future_poll(&pair->arm[i], cx) == TDT_READY)
			tdt_future_drop(&pair->arm[i]);
		pending = pending || !tdt_future_is_none(&pair->arm[i]);
	}
	return pending ? TDT_PENDING : TDT_READY;
}

static struct tdt_future looped_join(void)
{
	return pair(join_looped, (struct pair){ { sequence(), sequence() }, TDT_FUTURE_NONE });
}

/* A function that goes on from a join, and nobody can know it. */
static tdt_poll_t by_hand_poll(void *state, struct tdt_context *cx)
{
	struct pair *pair = state;
	tdt_poll_t result;

	if ((!tdt_future_is_none(&pair->arm[0]) || !tdt_future_is_none(&pair->arm[1])) &&
	    join_inlined(pair, cx) == TDT_PENDING)
		return TDT_PENDING;
	result = tdt_future_poll(&pair->last, cx);
	TDT_KEEP_FRAME();
	return result;
}

static struct tdt_future by_hand(void)
{
	return pair(by_hand_poll, (struct pair){ { leaf_1(), leaf_2() }, leaf_3() });
}

/* Items that come one after the other, and what is done with each. */
struct stream {
	struct tdt_async async;
	struct tdt_future source;
	unsigned items;
};

static tdt_poll_t next_poll(void *state, struct tdt_context *cx)
{
	struct stream *it = state;

	if (tdt_future_is_none(&it->source))
		it->source = leaf_1();
	if (tdt_future_poll(&it->source, cx) == TDT_PENDING)
		return TDT_PENDING;
	tdt_future_drop(&it->source);
	it->items++;
	return TDT_READY;
}

static tdt_poll_t stream_poll(void *state, struct tdt_context *cx)
{
	struct stream *it = state;

	TDT_BEGIN(&it->async, cx);
	while (it->items < 4) {
		TDT_AWAIT(((struct tdt_future){ it, next_poll, not_dropped }));
		TDT_AWAIT(leaf_2());
	}
	TDT_END();
}

static void stream_fini(void *state)
{
	struct stream *it = state;

	tdt_future_drop(&it->source);
}

static struct tdt_future stream(void)
{
	return TDT_ASYNC_NEW(stream_poll, (struct stream){ .async.fini = stream_fini });
}

/* --- On a stack of its own --------------------------------------------------------- */

static int sequence_fn(void *arg)
{
	int error = tdt_co_await(leaf_1());

	(void)arg;
	for (int round = 0; round < 3 && error == 0; round++)
		error = tdt_co_await(leaf_2());
	return error != 0 ? error : tdt_co_await(leaf_3());
}

static struct tdt_future coroutine(void)
{
	return tdt_coroutine(sequence_fn, NULL, NULL);
}

static int join_fn(void *arg)
{
	int error = tdt_co_await(inlined_join());

	(void)arg;
	return error != 0 ? error : tdt_co_await(looped_join());
}

static struct tdt_future coroutine_join(void)
{
	return tdt_coroutine(join_fn, NULL, NULL);
}

static const struct shape shapes[] = {
	{ "two in sequence", sequence, { [1] = 1 }, 1, KNOWN },
	{ "a loop, four rounds", rounds, { [1] = 3 }, 1, KNOWN },
	{ "nested bodies", nested, { [1] = 5, [2] = 1 }, 1, KNOWN },
	{ "select in a loop", select_loop, { [1] = 2 }, 2, KNOWN },
	{ "select in a loop, one held", select_held, { [1] = 2 }, 2, KNOWN },
	{ "select, the loser dropped", loser, { [1] = 1 }, 1, KNOWN },
	{ "join of two", join_two, { [1] = 1, [3] = 1 }, 2, KNOWN },
	{ "select of two", select_two, { [1] = 1, [3] = 1 }, 2, KNOWN },
	{ "join of two, and on", join_then, { [1] = 1, [2] = 1, [3] = 1, [4] = 1 }, 1, KNOWN },
	{ "join inlined", inlined_join, { [1] = 1, [3] = 1 }, 2, KNOWN },
	{ "join in a loop", looped_join, { [1] = 1 }, 2, KNOWN },
	{ "join_all, each twice", join_all_twice, { [1] = 3 }, 4, KNOWN },
	{ "join_all, boxed", join_all_boxed, { [1] = 3 }, 4, KNOWN },
	{ "select_all, boxed", select_all_boxed, { [1] = 1, [3] = 1 }, 3, KNOWN },
	{ "join_all, different awaits", join_all_different, { [1] = 2, [2] = 1 }, 3, KNOWN },
	{ "stream", stream, { [1] = 3, [2] = 2 }, 1, KNOWN },
	{ "coroutine", coroutine, { [1] = 1, [2] = 3 }, 1, KNOWN },
	{ "join in a coroutine", coroutine_join, { [1] = 3, [2] = 1, [3] = 1, [4] = 1 }, 2, KNOWN },
	{ "two wakers", duplex, { [9] = 1 }, 1, KNOWN },
	{ "two wakers, by a helper", helped, { [8] = 1 }, 1, HELPER },
	{ "join by hand, and on", by_hand, { [1] = 1, [2] = 1 }, 1, UNKNOWN_CALLER },
};

int main(int argc, char **argv)
{
	return ghosts_main(argc, argv, "C", shapes, sizeof(shapes) / sizeof(shapes[0]));
}
