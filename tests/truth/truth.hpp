/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_TRUTH_HPP
#define TESTS_TRUTH_HPP

/*
 * What a generated program of coroutines (generate_cxx.c) is made of.  Each coroutine has a
 * truth_here, in which AWAIT notes the line: the way from a leaf to the root is the truth,
 * whatever the stack looks like.
 */

#include <stdexcept>
#include <string>
#include <utility>

#include <tdt/coroutine.hpp>

#include "truth.h"

#define HERE(parent, function)                                                                     \
	truth_here here                                                                            \
	{                                                                                          \
		(parent), (function), __FILE__, 0                                                  \
	}
#define AWAIT(future) (here.line = __LINE__, co_await (future))

/* Any future as one for C. */
inline tdt_future as_c(tdt_future future)
{
	return future;
}

inline tdt_future as_c(tdt::task<> &&task)
{
	return std::move(task).release();
}

inline tdt_future as_c(tdt::task<int> &&task)
{
	return std::move(task).release(nullptr);
}

template <typename... Future> tdt_future joined(Future &&...future)
{
	tdt_future all[] = { as_c(std::move(future))... };

	return tdt_join_all(all, sizeof...(future));
}

template <typename... Future> tdt_future first_of(Future &&...future)
{
	tdt_future all[] = { as_c(std::move(future))... };

	return tdt_select(all, sizeof...(future), nullptr);
}

/* A leaf that is written by hand. */
inline tdt_poll_t leaf_poll(void *state, tdt_context *cx)
{
	auto *leaf = static_cast<truth_leaf *>(state);

	truth_leaf_polled(leaf);
	truth_leaf_cloned_at(leaf, tdt_waker_clone(cx->waker), "leaf_poll", __FILE__, __LINE__);
	return truth_leaf_ready(leaf) ? TDT_READY : TDT_PENDING;
}

inline tdt_future leaf(const truth_here *parent, int polls, truth_slot slot)
{
	tdt_future made = truth_leaf_new(leaf_poll, polls, slot);

	truth_leaf_is_at(static_cast<truth_leaf *>(made.state), parent);
	return made;
}

/* A future that is written by hand, and polls another, which `make` makes for it. */
struct pass {
	truth_here here;
	tdt_future child;
};

inline __attribute__((noinline)) tdt_poll_t pass_poll(void *state, tdt_context *cx)
{
	auto *self = static_cast<pass *>(state);
	tdt_poll_t result;

	self->here.line = __LINE__ + 1;
	result = tdt_future_poll(&self->child, cx);
	TDT_KEEP_FRAME();
	return result;
}

inline void pass_drop(void *state)
{
	auto *self = static_cast<pass *>(state);

	tdt_future_drop(&self->child);
	delete self;
}

template <typename Make> tdt_future passed(const truth_here *parent, Make make)
{
	auto *self = new pass{ { parent, "pass_poll", __FILE__, 0 }, TDT_FUTURE_NONE };

	self->child = as_c(make(&self->here));
	return { self, pass_poll, pass_drop };
}

#endif
