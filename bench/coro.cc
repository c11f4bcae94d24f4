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
#include <asio.hpp>
#ifdef ASIO_HAS_CO_AWAIT
#define BENCH_ASIO 1
#include <tdt/asio.hpp>
#endif
#endif
#include <tdt/coro.hpp>

extern "C" {
#define _Noreturn __attribute__((noreturn))
#include "report.h"
}

namespace
{

constexpr int TIMES = 20000;

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

#ifdef BENCH_ASIO

/* --- Asio: two executors, of which one is traced ---------------------------------- */

asio::io_context io(1);

template <bool traced> struct executor : asio::io_context::executor_type {
	executor(const asio::io_context::executor_type &other)
	    : asio::io_context::executor_type(other)
	{
	}
};
template <bool traced> using awaitable = asio::awaitable<void, executor<traced>>;
template <bool traced> using token = asio::use_awaitable_t<executor<traced>>;

} // namespace

TDT_ASIO_EXECUTOR(asio, executor<true>);

namespace
{

template <bool traced> awaitable<traced> asio_hop(int levels)
{
	if (levels > 0)
		co_await asio_hop<traced>(levels - 1);
}

template <bool traced> awaitable<traced> asio_hop_often(double *took)
{
	int64_t start = now();

	for (int i = 0; i < TIMES / 10; i++)
		co_await asio_hop<traced>(9);
	*took = static_cast<double>(now() - start) / TIMES;
}

template <bool traced> awaitable<traced> asio_post_often(double *took)
{
	int64_t start = now();

	for (int i = 0; i < TIMES; i++)
		co_await asio::post(io, token<traced>());
	*took = static_cast<double>(now() - start) / TIMES;
}

template <bool traced>
awaitable<traced> asio_echo(asio::local::stream_protocol::socket &peer, int times)
{
	char byte;

	for (int i = 0; i < times; i++) {
		co_await peer.async_read_some(asio::buffer(&byte, 1), token<traced>());
		co_await asio::async_write(peer, asio::buffer(&byte, 1), token<traced>());
	}
}

template <bool traced> awaitable<traced> asio_echo_often(double *took)
{
	asio::local::stream_protocol::socket a(io), b(io);
	char byte = 1;
	int64_t start;

	asio::local::connect_pair(a, b);
	asio::co_spawn(executor<traced>(io.get_executor()), asio_echo<traced>(b, TIMES / 10),
		       asio::detached);
	start = now();
	for (int i = 0; i < TIMES / 10; i++) {
		co_await asio::async_write(a, asio::buffer(&byte, 1), token<traced>());
		co_await a.async_read_some(asio::buffer(&byte, 1), token<traced>());
	}
	*took = static_cast<double>(now() - start) / (TIMES / 10);
}

template <bool traced> double in_asio(awaitable<traced> (*often)(double *))
{
	double took = 0;

	asio::co_spawn(executor<traced>(io.get_executor()), often(&took), asio::detached);
	io.restart();
	io.run();
	return took;
}

#endif

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
	at_most(figure_added("  added", resume[1], resume[0]), 40);
	for (int i = 0; i < rounds; i++) {
		add(hop[0], hops<false>());
		add(hop[1], hops<true>());
		add(resume[0], resumes<false>());
		add(resume[1], resumes<true>());
	}
#ifdef BENCH_ASIO
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
		add(hop[0], in_asio<false>(asio_hop_often<false>));
		add(hop[1], in_asio<true>(asio_hop_often<true>));
		add(resume[0], in_asio<false>(asio_post_often<false>));
		add(resume[1], in_asio<true>(asio_post_often<true>));
		add(echo[0], in_asio<false>(asio_echo_often<false>));
		add(echo[1], in_asio<true>(asio_echo_often<true>));
	}
#else
	remark("Asio: there is none");
#endif
	return report_end();
}
