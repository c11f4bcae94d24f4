// SPDX-License-Identifier: Apache-2.0 OR MIT
#ifndef DEMO_BOOST_FIBERS_HPP
#define DEMO_BOOST_FIBERS_HPP
/*
 * Coroutines of Boost as tasks of tdt: fiber and continuation of Boost.Context, and
 * Boost.Coroutine2.  Copy this file into a program.  Each coroutine gets a stack allocator of its
 * own, and its function captures a copy:
 *
 *	traced_stack task(TDT_TASK_ATTR("session"));
 *
 *	fiber session(std::allocator_arg, task, [task](fiber &&scheduler) {
 *		task.run([&] {
 *			while (!ready())
 *				scheduler = task.away([&] { return std::move(scheduler).resume(); });
 *			...
 *		});
 *		return std::move(scheduler);
 *	});
 *
 *	coroutine<int>::push_type sum(task, [task](coroutine<int>::pull_type &numbers) {
 *		task.run([&] {
 *			for (...)
 *				task.away([&] { numbers(); });
 *		});
 *	});
 */

#include <memory>
#include <utility>

#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/stack_context.hpp>

#include <tdt/integrate/fiber.h>
#include <tdt/trace.h>

/* The task begins when Boost allocates the stack, and ends when Boost frees it. */
class traced_stack {
      public:
	using traits_type = boost::context::fixedsize_stack::traits_type;

	/* The name must stay as it is until Boost has allocated the stack. */
	explicit traced_stack(const tdt_task_attr *attr,
			      std::size_t size = traits_type::default_size())
	    : attr_(*attr), stack_(size), fiber_(std::make_shared<tdt_fiber *>(nullptr))
	{
	}

	boost::context::stack_context allocate()
	{
		boost::context::stack_context stack = stack_.allocate();

		*fiber_ = tdt_fiber_new(static_cast<char *>(stack.sp) - stack.size, stack.size,
					&attr_);
		return stack;
	}

	void deallocate(boost::context::stack_context &stack) noexcept
	{
		tdt_fiber_end(*fiber_);
		stack_.deallocate(stack);
	}

	/* Call `function`, which is all that the coroutine does.  The trees begin here. */
	template <typename Function> __attribute__((noinline)) void run(Function &&function) const
	{
		TDT_FIBER_BASE(*fiber_);
		tdt_fiber_resume(*fiber_);
		function();
		TDT_KEEP_FRAME();
	}

	/*
	 * Call `switch_away`, which leaves the coroutine's stack and later comes back to it.  If
	 * the coroutine is destroyed meanwhile, Boost throws there; the stack is in use then, too.
	 */
	template <typename Switch> auto away(Switch &&switch_away) const -> decltype(switch_away())
	{
		const resumed_at_end resumed{*fiber_};

		tdt_fiber_suspend(*fiber_);
		return switch_away();
	}

      private:
	struct resumed_at_end {
		tdt_fiber *fiber;
		~resumed_at_end() { tdt_fiber_resume(fiber); }
	};

	tdt_task_attr attr_;
	boost::context::fixedsize_stack stack_;
	std::shared_ptr<tdt_fiber *> fiber_;
};

#endif
