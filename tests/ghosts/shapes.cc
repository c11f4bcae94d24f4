// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The shapes in C++20: coroutines of tdt/coroutine.hpp. */

#include <utility>

#include <tdt/coroutine.hpp>

#include "shapes.h"

namespace
{

/* --- One after the other ------------------------------------------------------ */

tdt::task<> sequence()
{
	co_await leaf_1();
	co_await leaf_2();
}

tdt::task<> rounds()
{
	for (int round = 0; round < 4; round++)
		co_await leaf_1();
}

tdt::task<> nested()
{
	co_await sequence();
	co_await rounds();
	co_await leaf_3();
}

tdt::task<> duplex()
{
	co_await leaf_9();
	co_await leaf_9();
}

tdt::task<> helped()
{
	co_await leaf_8();
	co_await leaf_8();
}

/* --- Side by side -------------------------------------------------------------- */

tdt::task<> other()
{
	co_await leaf_3();
	co_await leaf_4();
}

tdt::task<> three()
{
	co_await leaf_1();
	co_await leaf_2();
	co_await leaf_3();
}

template <typename... Tasks> tdt_future join_all(Tasks... tasks)
{
	tdt_future futures[] = { std::move(tasks).release()... };

	return tdt_join_all(futures, sizeof...(tasks));
}

template <typename... Tasks> tdt_future select_all(Tasks... tasks)
{
	tdt_future futures[] = { std::move(tasks).release()... };

	return tdt_select(futures, sizeof...(tasks), nullptr);
}

tdt::task<> join_then()
{
	co_await join_all(sequence(), other());
	co_await leaf_5();
}

/* The loser comes first, so that it registers before the winner is found. */
tdt_future race()
{
	tdt_future futures[] = { leaf_2(), leaf_1() };

	return tdt_select(futures, 2, nullptr);
}

tdt::task<> select_loop()
{
	for (int round = 0; round < 4; round++)
		co_await race();
}

/* One that is polled in each round, and is there in the next. */
tdt_poll_t held_poll(void *state, tdt_context *cx)
{
	return tdt_future_poll(&static_cast<tdt::future *>(state)->get(), cx);
}

tdt::task<> select_held()
{
	tdt::future held(leaf_2());
	std::size_t winner;

	do {
		tdt_future futures[] = { { &held, held_poll, [](void *) {} }, leaf_1() };

		co_await tdt_select(futures, 2, &winner);
	} while (winner != 0);
}

tdt::task<> loser()
{
	co_await race();
	co_await leaf_3();
}

/* A coroutine that only awaits another. */
tdt::task<> boxed(tdt::task<> inner)
{
	co_await std::move(inner);
}

/* --- Written by hand ------------------------------------------------------------- */

/* Two arms, each polled at a place of its own, in whoever polls it. */
class pair
{
      public:
	pair(tdt_future first, tdt_future second) : first_(first), second_(second) {}

	__attribute__((always_inline)) tdt_poll_t poll(tdt_context *cx)
	{
		if (first_ && tdt_future_poll(&first_.get(), cx) == TDT_READY)
			first_ = tdt::future();
		if (second_ && tdt_future_poll(&second_.get(), cx) == TDT_READY)
			second_ = tdt::future();
		return first_ || second_ ? TDT_PENDING : TDT_READY;
	}

      private:
	tdt::future first_, second_;
};

/* Polls the pair, and goes on to `last`, which nobody can know. */
struct parent {
	pair arms;
	tdt::future last;
	bool joined = false;

	static tdt_poll_t poll(void *state, tdt_context *cx)
	{
		parent *self = static_cast<parent *>(state);
		tdt_poll_t result;

		if (!self->joined && self->arms.poll(cx) == TDT_PENDING)
			return TDT_PENDING;
		self->joined = true;
		if (!self->last)
			return TDT_READY;
		result = tdt_future_poll(&self->last.get(), cx);
		TDT_KEEP_FRAME();
		return result;
	}
	static void drop(void *state) { delete static_cast<parent *>(state); }

	tdt_future future() { return { this, poll, drop }; }
};

tdt_future inlined_join()
{
	return (new parent{ { sequence().release(), other().release() }, {} })->future();
}

tdt_future by_hand()
{
	return (new parent{ { leaf_1(), leaf_2() }, tdt::future(leaf_3()) })->future();
}

/* Items that come one after the other, and what is done with each. */
class ticks
{
      public:
	tdt::task<bool> next()
	{
		if (++items_ > 4)
			co_return false;
		co_await leaf_1();
		co_return true;
	}

      private:
	int items_ = 0;
};

tdt::task<> stream()
{
	ticks source;

	while (co_await source.next())
		co_await leaf_2();
}

/* --- On a stack of its own --------------------------------------------------------- */

int sequence_fn(void *)
{
	int error = tdt_co_await(sequence().release());

	for (int round = 0; round < 3 && error == 0; round++)
		error = tdt_co_await(leaf_2());
	return error != 0 ? error : tdt_co_await(leaf_3());
}

int join_fn(void *)
{
	int error = tdt_co_await(inlined_join());

	return error != 0 ? error : tdt_co_await(inlined_join());
}

tdt_future join_all_twice()
{
	return join_all(sequence(), sequence(), sequence(), sequence());
}

tdt_future join_all_boxed()
{
	return join_all(boxed(sequence()), boxed(sequence()), boxed(sequence()));
}

tdt_future select_all_boxed()
{
	return select_all(boxed(sequence()), boxed(other()), boxed(three()));
}

tdt_future join_all_different()
{
	return join_all(three(), three(), three());
}

/* The coroutine as a future, by a function of no arguments. */
template <auto run> tdt_future released()
{
	return run().release();
}

template <auto run> tdt_future stackful()
{
	return tdt_coroutine(run, nullptr, nullptr);
}

const shape shapes[] = {
	{ "two in sequence", released<sequence>, { 0, 1 }, 1, KNOWN },
	{ "a loop, four rounds", released<rounds>, { 0, 3 }, 1, KNOWN },
	{ "nested bodies", released<nested>, { 0, 5, 1 }, 1, KNOWN },
	{ "select in a loop", released<select_loop>, { 0, 2 }, 2, KNOWN },
	{ "select in a loop, one held", released<select_held>, { 0, 2 }, 2, KNOWN },
	{ "select, the loser dropped", released<loser>, { 0, 1 }, 1, KNOWN },
	{ "join of two", [] { return join_all(sequence(), other()); }, { 0, 1, 0, 1 }, 2, KNOWN },
	{ "select of two",
	  [] { return select_all(sequence(), other()); },
	  { 0, 1, 0, 1 },
	  2,
	  KNOWN },
	{ "join of two, and on", released<join_then>, { 0, 1, 1, 1, 1 }, 1, KNOWN },
	{ "join inlined", inlined_join, { 0, 1, 0, 1 }, 2, KNOWN },
	{ "join_all, each twice", join_all_twice, { 0, 3 }, 4, KNOWN },
	{ "join_all, boxed", join_all_boxed, { 0, 2 }, 3, KNOWN },
	{ "select_all, boxed", select_all_boxed, { 0, 1, 0, 1 }, 3, KNOWN },
	{ "join_all, different awaits", join_all_different, { 0, 2, 1 }, 3, KNOWN },
	{ "stream", released<stream>, { 0, 3, 2 }, 1, KNOWN },
	{ "coroutine", stackful<sequence_fn>, { 0, 1, 3 }, 1, KNOWN },
	{ "join in a coroutine", stackful<join_fn>, { 0, 2, 1, 2, 1 }, 2, KNOWN },
	{ "two wakers", released<duplex>, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, 1, KNOWN },
	{ "two wakers, by a helper", released<helped>, { 0, 0, 0, 0, 0, 0, 0, 0, 1 }, 1, HELPER },
	{ "join by hand, and on", by_hand, { 0, 1, 1 }, 1, UNKNOWN_CALLER },
};

} // namespace

int main(int argc, char **argv)
{
	return ghosts_main(argc, argv, "C++", shapes, sizeof(shapes) / sizeof(shapes[0]));
}
