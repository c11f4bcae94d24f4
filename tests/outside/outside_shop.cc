// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * A C++ program for the program tdt to look at: clerks that wait in coroutines, in the middle of
 * methods.
 *
 *	outside_shop    prints "ready"; ends with its input
 */

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

#include <tdt/rt/runtime.h>
#include <tdt/tdt.h>

#include "lib/at_rest.h"

namespace shop
{

static std::atomic<int> waiting;

class Clerk
{
public:
	explicit Clerk(uint64_t ms) : ms(ms) {}

	__attribute__((noinline)) int serve()
	{
		volatile int served = take_order();

		return served + 1;
	}

private:
	uint64_t ms;

	__attribute__((noinline)) int take_order()
	{
		waiting++;
		volatile int error = tdt_co_await(tdt_sleep_ms(ms));

		return error;
	}
};

static int work(void *arg)
{
	return static_cast<Clerk *>(arg)->serve();
}

} // namespace shop

int main()
{
	static shop::Clerk clerks[] = { shop::Clerk(60000000), shop::Clerk(60000001) };
	struct tdt_rt *rt = tdt_rt_new(nullptr);

	if (rt == nullptr)
		return EXIT_FAILURE;
	for (shop::Clerk &clerk : clerks) {
		struct tdt_task_attr attr = {};

		attr.size = sizeof attr;
		attr.name = "clerk";
		tdt_handle_unref(tdt_rt_spawn(
			rt, tdt_coroutine(shop::work, &clerk, nullptr), &attr));
	}
	while (shop::waiting < 2)
		usleep(1000);
	wait_for_rest(0);
	std::puts("ready");
	std::fflush(stdout);
	while (std::getchar() != EOF)
		;
	_exit(EXIT_SUCCESS); /* its tasks never end */
}
