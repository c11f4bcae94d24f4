// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Fibers of Boost.Fiber wait in a channel, for a mutex, and for a time; a dump shows where.  See
 * boost_fiber.hpp.
 */

#include <chrono>
#include <cstdio>

#define TDT_BOOST_FIBER_HOOKS
#include "boost_fiber.hpp"

#include <tdt/trace.h>

namespace fibers = boost::fibers;

static fibers::mutex printer;
static fibers::unbuffered_channel<int> orders;

__attribute__((noinline)) static void print()
{
	std::unique_lock<fibers::mutex> lock(printer);
	std::puts("printed");
}

__attribute__((noinline)) static void rest()
{
	fibers::mutex mutex;
	std::unique_lock<fibers::mutex> lock(mutex);
	std::unique_lock<fibers::mutex> printing(printer);
	boost::this_fiber::sleep_for(std::chrono::milliseconds(500));
}

__attribute__((noinline)) static void serve()
{
	for (int order; orders.pop(order) == fibers::channel_op_status::success;)
		std::printf("order %d\n", order);
}

int main()
{
	fibers::fiber sleeper(std::allocator_arg, tdt_boost::stack(TDT_TASK_ATTR("sleeper")),
			      tdt_boost::traced(rest));
	fibers::fiber waiter(std::allocator_arg, tdt_boost::stack(TDT_TASK_ATTR("waiter")),
			      tdt_boost::traced(print));
	fibers::fiber server(std::allocator_arg, tdt_boost::stack(TDT_TASK_ATTR("server")),
			      tdt_boost::traced(serve));

	boost::this_fiber::sleep_for(std::chrono::milliseconds(100));
	tdt_dump(stdout);
	orders.push(1);
	orders.close();
	sleeper.join();
	waiter.join();
	server.join();
}
