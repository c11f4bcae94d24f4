// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * This benchmark compares coroutines of one type with those of the same type that are traced
 * (tdt/coro.hpp), and the same of Asio (tdt/asio.hpp).  A hop is an await of another coroutine,
 * there and back; a resume is a wait that ends.  In the echo, a byte goes through a pair of
 * sockets.
 */

#include <config.h>

#include <coroutine>
#include <cstdlib>
#include <exception>
#include <utility>

#ifdef HAVE_ASIO
#include <tdt/asio.hpp>
#include <asio.hpp>
#else
#include <tdt/coro.hpp>
#endif

#include "coro_asio.h"

namespace
{

/* --- A type of one's own, plain and traced --------------------------------------- */

template <bool traced> struct lazy {
	struct promise_type {
		std::coroutine_handle<> awaiting = std::noop_coroutine();

		struct last {
			bool await_ready() const noexcept
			{
				return false;
			}
			std::coroutine_handle<>
			await_suspend(std::coroutine_handle<promise_type> ended) const noexcept
			{
				return ended.promise().awaiting;
			}
			void await_resume() const noexcept
			{
			}
		};
		lazy get_return_object()
		{
			return lazy(std::coroutine_handle<promise_type>::from_promise(*this));
		}
		std::suspend_always initial_suspend() const noexcept
		{
			return {};
		}
		last final_suspend() const noexcept
		{
			return {};
		}
		void unhandled_exception() const
		{
			std::terminate();
		}
		void return_void() const noexcept
		{
		}
	};
	std::coroutine_handle<promise_type> handle;

	explicit lazy(std::coroutine_handle<promise_type> made) : handle(made)
	{
	}
	lazy(lazy &&other) noexcept : handle(std::exchange(other.handle, nullptr))
	{
	}
	~lazy()
	{
		if (handle)
			handle.destroy();
	}
	bool await_ready() const noexcept
	{
		return false;
	}
	std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept
	{
		handle.promise().awaiting = awaiting;
		return handle;
	}
	void await_resume() const noexcept
	{
	}
};

std::coroutine_handle<> paused;

struct pause {
	bool await_ready() const noexcept
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<> at) const noexcept
	{
		paused = at;
	}
	void await_resume() const noexcept
	{
	}
};

} // namespace

TDT_CORO(lazy<true>);

namespace
{

template <bool traced> __attribute__((noinline)) lazy<traced> hop(int levels)
{
	if (levels > 0)
		co_await hop<traced>(levels - 1);
}

template <bool traced> lazy<traced> hop_often(double *took)
{
	int64_t start = now();

	for (int i = 0; i < TIMES / 10; i++)
		co_await hop<traced>(9);
	*took = static_cast<double>(now() - start) / TIMES;
}

template <bool traced> lazy<traced> pause_often()
{
	for (int i = 0; i < TIMES; i++)
		co_await pause();
}

template <bool traced> double hops()
{
	double took;
	lazy<traced> all = hop_often<traced>(&took);

	all.handle.resume();
	return took;
}

template <bool traced> double resumes()
{
	lazy<traced> all = pause_often<traced>();
	int64_t start;

	all.handle.resume();
	start = now();
	for (int i = 0; i < TIMES; i++)
		paused.resume();
	return static_cast<double>(now() - start) / TIMES;
}

} // namespace

int main(int argc, char **argv)
{
	struct figure *hop[2], *resume[2];

	report_start(argc, argv, "What do tdt/coro.hpp and tdt/asio.hpp cost?", "ns", 21);
	hop[0] = figure("a hop of a type of one's own", nullptr);
	hop[1] = figure("  traced", hop[0]);
	at_most(figure_added("  added", hop[1], hop[0]), 6);
	resume[0] = figure("a resume of it", nullptr);
	resume[1] = figure("  traced", resume[0]);
	at_most(figure_added("  added", resume[1], resume[0]), 16);
	for (int i = 0; i < rounds; i++) {
		add(hop[0], hops<false>());
		add(hop[1], hops<true>());
		add(resume[0], resumes<false>());
		add(resume[1], resumes<true>());
	}
#ifdef ASIO_HAS_CO_AWAIT
	struct figure *echo[2];

	hop[0] = figure("a hop of Asio", nullptr);
	hop[1] = figure("  traced", hop[0]);
	at_most(figure_added("  added", hop[1], hop[0]), 6);
	resume[0] = figure("a resume of Asio (post)", nullptr);
	resume[1] = figure("  traced", resume[0]);
	at_most(figure_added("  added", resume[1], resume[0]), 40);
	echo[0] = figure("an echo through a pair of sockets", nullptr);
	echo[1] = figure("  traced", echo[0]);
	for (int i = 0; i < rounds; i++) {
		add(hop[0], plain_asio(ASIO_HOP));
		add(hop[1], in_asio(ASIO_HOP));
		add(resume[0], plain_asio(ASIO_POST));
		add(resume[1], in_asio(ASIO_POST));
		add(echo[0], plain_asio(ASIO_ECHO));
		add(echo[1], in_asio(ASIO_ECHO));
	}
#else
	remark("Asio: there is none");
#endif
	return report_end();
}
