// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Many coroutines on several threads, each of which knows where it waits: for coro.sh.
 *
 *	coro N THREADS
 *
 * N coroutines are resumed a different number of times, each time on another thread.  They await
 * others that begin by symmetric transfer (`task`), or by a resume() (`nested`, whose promise is
 * final); or they are Asio's (ASIO_ALONE, ASIO_BOOST).  On each thread, one then blocks
 * for ever.  A line for each says what is true, as callbacks.c has it.
 */

#include <atomic>
#include <barrier>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#if defined(ASIO_BOOST)
#include <tdt/asio.hpp>
#include <boost/asio.hpp>
#define ASIO boost::asio
#define ASIO_ERROR boost::system::error_code
#elif defined(ASIO_ALONE)
#include <tdt/asio.hpp>
#include <asio.hpp>
#define ASIO asio
#define ASIO_ERROR std::error_code
#else
#include <tdt/coro.hpp>
#endif
#include <tdt/tdt.h>

#include "lib/must.h"

namespace
{

struct operation;

#ifdef ASIO

/* A coroutine of Asio waits for a timer that never fires, and goes on when it is cancelled. */
ASIO::io_context io;
template <typename T> using task = ASIO::awaitable<T>;
template <typename T> using nested = task<T>;
using at_pause = std::optional<ASIO::steady_timer>;
const char *const waits = "timer";

#else

/* What both types have. */
struct promise_part {
	std::coroutine_handle<> awaiting;
	std::exception_ptr error;
	int value = 0;

	std::suspend_always initial_suspend() noexcept
	{
		return {};
	}
	void unhandled_exception() noexcept
	{
		error = std::current_exception();
	}
	void return_value(int returned) noexcept
	{
		value = returned;
	}
	int take() const
	{
		if (error)
			std::rethrow_exception(error);
		return value;
	}
};

template <typename Promise> struct owner {
	using promise_type = Promise;

	std::coroutine_handle<Promise> handle;

	explicit owner(Promise &promise)
	    : handle(std::coroutine_handle<Promise>::from_promise(promise))
	{
	}
	owner(owner &&other) noexcept : handle(std::exchange(other.handle, nullptr))
	{
	}
	~owner()
	{
		if (handle)
			handle.destroy();
	}
};

/* Begins, and goes on with what awaits it, by symmetric transfer. */
struct symmetric_promise : promise_part {
	struct last {
		bool await_ready() const noexcept
		{
			return false;
		}
		std::coroutine_handle<>
		await_suspend(std::coroutine_handle<symmetric_promise> ended) const noexcept
		{
			auto awaiting = ended.promise().awaiting;

			return awaiting ? awaiting : std::noop_coroutine();
		}
		void await_resume() const noexcept
		{
		}
	};
	last final_suspend() noexcept
	{
		return {};
	}
	owner<symmetric_promise> get_return_object()
	{
		return owner<symmetric_promise>(*this);
	}
};
template <typename> struct task : owner<symmetric_promise> {
	task(owner<symmetric_promise> &&made) : owner(std::move(made))
	{
	}
	auto operator co_await() &&noexcept
	{
		struct awaiter {
			std::coroutine_handle<symmetric_promise> awaited;

			bool await_ready() const noexcept
			{
				return false;
			}
			std::coroutine_handle<>
			await_suspend(std::coroutine_handle<> awaiting) const noexcept
			{
				awaited.promise().awaiting = awaiting;
				return awaited;
			}
			int await_resume() const
			{
				return awaited.promise().take();
			}
		};
		return awaiter{ handle };
	}
};

/* Is resumed in the co_await, and resumes what awaits it. */
struct nested_promise final : promise_part {
	struct last {
		bool await_ready() const noexcept
		{
			return false;
		}
		void await_suspend(std::coroutine_handle<nested_promise> ended) const noexcept
		{
			ended.promise().awaiting.resume();
		}
		void await_resume() const noexcept
		{
		}
	};
	last final_suspend() noexcept
	{
		return {};
	}
	owner<nested_promise> get_return_object()
	{
		return owner<nested_promise>(*this);
	}
};
template <typename> struct nested : owner<nested_promise> {
	nested(owner<nested_promise> &&made) : owner(std::move(made))
	{
	}
	bool await_ready() const noexcept
	{
		return false;
	}
	void await_suspend(std::coroutine_handle<> awaiting) const
	{
		handle.promise().awaiting = awaiting;
		handle.resume();
	}
	int await_resume() const
	{
		return handle.promise().take();
	}
};

using at_pause = std::coroutine_handle<>;
const char *const waits = "-";

#endif

} // namespace

#ifndef ASIO
TDT_CORO(task<T>, class T);
TDT_CORO(nested<T>, class T);
#endif

namespace
{

struct operation {
	std::uint64_t id = 0;
	const char *chain = nullptr;
	at_pause paused = {};
	unsigned thirds = 0; /* so many it awaits in a row */
	bool blocks = false;
#ifdef ASIO
	ASIO_ERROR cancelled = {};
#endif
};

std::atomic<unsigned> resting;
int never_written[2];

#ifdef ASIO
task<void> pause(operation &own)
{
	own.paused.emplace(io, ASIO::steady_timer::time_point::max());
	return own.paused->async_wait(ASIO::redirect_error(ASIO::use_awaitable, own.cancelled));
}
#else
auto pause(operation &own)
{
	struct awaiter {
		operation &own;

		bool await_ready() const noexcept
		{
			return false;
		}
		void await_suspend(std::coroutine_handle<> paused) const noexcept
		{
			own.paused = paused;
		}
		void await_resume() const noexcept
		{
		}
	};
	return awaiter{ own };
}
#endif

__attribute__((noinline)) void block()
{
	char byte;

	resting++;
	MUST(read(never_written[0], &byte, 1) == 1);
	TDT_KEEP_FRAME();
}

task<int> third(operation &own, bool throws)
{
	own.chain = "begin>first>second>third";
	if (!own.blocks)
		co_await pause(own);
	if (throws)
		throw own.thirds;
	co_return 3;
}

nested<int> second(operation &own)
{
	int sum = 0;

	for (unsigned i = 0; i < own.thirds; i++)
		sum += co_await third(own, false);
	own.chain = "begin>first>second";
	if (!own.blocks)
		co_await pause(own);
	try {
		sum += co_await third(own, true);
	} catch (unsigned) {
	}
	if (own.blocks) {
		own.chain = "begin>first>second>block";
		block();
	}
	co_return sum;
}

task<int> first(operation &own)
{
	for (;;) {
		own.chain = "begin>first";
		if (!own.blocks)
			co_await pause(own);
		co_await second(own);
	}
}

task<int> begin(operation &own)
{
	own.id = tdt_current_task_id();
	co_return co_await first(own);
}

std::vector<operation> operations;
unsigned threads;

/* Whether the operation goes on in this turn; those that block do so in the last one. */
constexpr unsigned TURNS = 9;
bool goes_on(unsigned i, unsigned turn)
{
	return turn < TURNS ? i % TURNS >= turn : i < threads;
}

#ifdef ASIO
void spawn(operation &own)
{
	ASIO::co_spawn(io, begin(own), ASIO::detached);
}
void before(unsigned turn)
{
	for (unsigned i = 0; i < operations.size() && turn > 0; i++)
		if (goes_on(i, turn))
			operations[i].paused->cancel();
	io.restart();
}
void run(unsigned, unsigned)
{
	io.poll();
}
#else
std::vector<task<int>> begun;

void spawn(operation &own)
{
	begun.push_back(begin(own));
}
void before(unsigned)
{
}
/* Each operation is on another thread than the last time. */
void run(unsigned thread, unsigned turn)
{
	for (unsigned i = 0; i < operations.size(); i++)
		if (turn == TURNS ? i == thread : (i + turn) % threads == thread) {
			if (turn == 0)
				begun[i].handle.resume();
			else if (goes_on(i, turn))
				operations[i].paused.resume();
		}
}
#endif

void dump(const char *path)
{
	tdt_print_options json = {};
	tdt_dump_options options = {};
	std::FILE *out = std::fopen(path, "w");

	json.size = sizeof json;
	json.format = TDT_PRINT_JSON;
	options.size = sizeof options;
	options.timeout_ns = INT64_C(60000000000);
	options.print = &json;
	MUST(out != nullptr && tdt_dump_with(out, &options) == 0 && std::fclose(out) == 0);
	std::puts("dumped");
	std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv)
{
	char line[4096];

	MUST(argc == 3 && pipe(never_written) == 0);
	operations = std::vector<operation>(static_cast<unsigned>(std::atoi(argv[1])));
	threads = static_cast<unsigned>(std::atoi(argv[2]));
	for (unsigned i = 0; i < operations.size(); i++) {
		operations[i].thirds = i % 3;
		spawn(operations[i]);
	}
	std::barrier turns(threads + 1);

	for (unsigned thread = 0; thread < threads; thread++)
		std::thread([&turns, thread] {
			for (unsigned turn = 0; turn <= TURNS; turn++) {
				turns.arrive_and_wait();
				run(thread, turn);
				turns.arrive_and_wait();
			}
		}).detach();
	for (unsigned turn = 0; turn <= TURNS; turn++) {
		before(turn);
		for (unsigned i = 0; i < threads; i++)
			operations[i].blocks = turn == TURNS;
		turns.arrive_and_wait();
		if (turn < TURNS)
			turns.arrive_and_wait();
	}
	while (resting != threads)
		usleep(1000);
	MUST(tdt_misused() == nullptr);
	for (const operation &own : operations)
		std::printf("%" PRIu64 " %s %s %s\n", own.id, own.blocks ? "running" : "waiting",
			    own.blocks ? "-" : waits, own.chain);
	std::puts("ready");
	std::fflush(stdout);
	while (std::fgets(line, sizeof line, stdin) != nullptr) {
		line[std::strcspn(line, "\n")] = '\0';
		dump(line + 5);
	}
	_exit(0);
}
