// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Coroutines of Boost.Context and Boost.Coroutine2 as tasks: boost_fibers.hpp is the adapter.
 *
 * Two visitors play a game over a line each: one still has to give a name, the other's guess is
 * awaited.  A third coroutine, of Boost.Coroutine2, adds up the numbers that it is fed.
 */

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <boost/context/fiber.hpp>
#include <boost/coroutine2/all.hpp>

#include <tdt/dump.h>

#include "boost_fibers.hpp"
#include "help.h"

using boost::context::fiber;
using numbers = boost::coroutines2::coroutine<int>;

class visitor {
      public:
	explicit visitor(const char *task_name)
	    : task_(TDT_TASK_ATTR(task_name)),
	      self_(std::allocator_arg, task_, [this](fiber &&scheduler) {
		      scheduler_ = std::move(scheduler);
		      task_.run([this] { play(); });
		      return std::move(scheduler_);
	      })
	{
		self_ = std::move(self_).resume();
	}

	void type(const std::string &text)
	{
		line_ = text;
		self_ = std::move(self_).resume();
	}

      private:
	void play()
	{
		const std::string name = read_line();

		while (!guess())
			std::printf("No, %s.\n", name.c_str());
		std::printf("Yes, %s!\n", name.c_str());
	}

	bool guess() { return read_line() == "42"; }

	std::string read_line()
	{
		while (line_.empty())
			wait();
		return std::exchange(line_, std::string());
	}

	void wait()
	{
		scheduler_ = task_.away([this] { return std::move(scheduler_).resume(); });
	}

	traced_stack task_;
	std::string line_;
	fiber scheduler_, self_;
};

static void add_up(const traced_stack &task, numbers::pull_type &source, int &sum)
{
	while (source) {
		sum += source.get();
		task.away([&source] { source(); });
	}
}

/* Print where they wait, then let them go on. */
static int play()
{
	traced_stack task(TDT_TASK_ATTR("adder"));
	visitor ann("ann"), ben("ben");
	int error, sum = 0;
	numbers::push_type adder(task, [task, &sum](numbers::pull_type &source) {
		task.run([&] { add_up(task, source, sum); });
	});

	ben.type("Ben");
	adder(3);
	error = tdt_dump(stdout);
	ann.type("Ann");
	ann.type("41");
	ben.type("42");
	adder(4);
	std::printf("The sum is %d.\n", sum);
	return error;
}

static const char boost_help[] =
	"Usage: fibers-boost [--help]\n"
	"Print where coroutines of Boost wait, and let them go on.\n";

int main(int argc, char **argv)
{
	int error = read_options(argc, argv, boost_help);

	if (error >= 0)
		return error;
	std::setlocale(LC_ALL, ""); /* in a UTF-8 locale the trees are drawn in UTF-8 */
	error = play();
	if (error == 0)
		error = tdt_dump(stdout); /* ann and adder were destroyed as they waited */
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
