// SPDX-License-Identifier: Apache-2.0 OR MIT
// For fold.sh: a library of headers that the program depends on.
#include <functional>

#include <tdt/future.h>

namespace pool {

inline const tdt_waker *kept;

template <class T> __attribute__((noinline)) tdt_poll_t register_waker(T &, tdt_context *cx)
{
	if (kept != nullptr)
		tdt_waker_drop(kept);
	kept = tdt_waker_clone(cx->waker);
	return TDT_PENDING;
}

/* Waits for ever. */
template <class T> struct socket {
	T value;

	__attribute__((noinline)) tdt_poll_t read(tdt_context *cx)
	{
		tdt_poll_t poll = register_waker(value, cx); // read
		asm volatile("");
		return poll;
	}
};

template <class F> __attribute__((noinline)) tdt_poll_t initiate(F &&function, tdt_context *cx)
{
	tdt_poll_t poll = std::invoke(function, cx);
	asm volatile("");
	return poll;
}

}
