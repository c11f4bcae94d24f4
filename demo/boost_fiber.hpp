// SPDX-License-Identifier: Apache-2.0 OR MIT
/*
 * Boost.Fiber, unchanged: its fibers are tasks.  Copy this file.  A fiber gets a stack allocator
 * and a wrapper of its function,
 *
 *	boost::fibers::fiber f(std::allocator_arg, tdt_boost::stack(TDT_TASK_ATTR("session")),
 *			       tdt_boost::traced([] { session(); }));
 *
 * and one source file of the program, which is linked with the shared libboost_fiber, defines
 * TDT_BOOST_FIBER_HOOKS before it includes this file: the three functions by which a fiber switches
 * away then stand before those of the library.
 */

#pragma once

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include <boost/fiber/all.hpp>
#include <dlfcn.h>

#include <tdt/integrate/fiber.h>

namespace tdt_boost {

// A stack lies at a multiple of its size, and begins with its fiber: so does whatever is on it.
constexpr std::uintptr_t stack_size = 64 * 1024;

inline tdt_fiber *&fiber_at(const void *on_stack)
{
	return *reinterpret_cast<tdt_fiber **>(reinterpret_cast<std::uintptr_t>(on_stack) &
					       ~(stack_size - 1));
}

class stack
{
public:
	using traits_type = boost::context::stack_traits;

	explicit stack(const tdt_task_attr *attr) : attr(*attr) {}

	boost::context::stack_context allocate()
	{
		char *low = static_cast<char *>(std::aligned_alloc(stack_size, stack_size));
		boost::context::stack_context context;

		if (low == nullptr)
			throw std::bad_alloc();
		fiber_at(low) = tdt_fiber_new(low + 16, stack_size - 16, &attr);
		context.size = stack_size;
		context.sp = low + stack_size;
		return context;
	}

	void deallocate(boost::context::stack_context &context) noexcept
	{
		char *low = static_cast<char *>(context.sp) - stack_size;

		tdt_fiber_end(fiber_at(low));
		std::free(low);
	}

private:
	tdt_task_attr attr;
};

// The outermost function of the fiber: its frame ends the stacks that are shown.
template <class F> auto traced(F f)
{
	return [f = std::move(f)](auto &&...arguments) mutable __attribute__((noinline)) {
		tdt_fiber *self = fiber_at(__builtin_frame_address(0));

		TDT_FIBER_BASE(self);
		tdt_fiber_resume(self);
		f(std::forward<decltype(arguments)>(arguments)...);
		fiber_at(__builtin_frame_address(0)) = nullptr;
		tdt_fiber_end(self);
	};
}

} // namespace tdt_boost

#ifdef TDT_BOOST_FIBER_HOOKS
// A context lies at the top of its fiber's stack.  Those of threads and dispatchers are on others.
#define TDT_BOOST_SWITCH(symbol, parameters, types, arguments)                                     \
	void boost::fibers::context::resume parameters noexcept                                    \
	{                                                                                          \
		static const auto real =                                                           \
			reinterpret_cast<void(*) types>(dlsym(RTLD_NEXT, symbol));                 \
		tdt_fiber *self = active()->is_context(type::worker_context) ?                     \
					  tdt_boost::fiber_at(active()) :                          \
					  nullptr;                                                 \
		tdt_fiber_suspend(self);                                                           \
		real arguments;                                                                    \
		tdt_fiber_resume(self);                                                            \
	}
TDT_BOOST_SWITCH("_ZN5boost6fibers7context6resumeEv", (), (context *), (this))
TDT_BOOST_SWITCH("_ZN5boost6fibers7context6resumeEPS1_", (context * ready), (context *, context *),
		 (this, ready))
TDT_BOOST_SWITCH("_ZN5boost6fibers7context6resumeERSt11unique_lockINS0_6detail13spinlock_ttasEE",
		 (detail::spinlock_lock & lock), (context *, detail::spinlock_lock &), (this, lock))
#undef TDT_BOOST_SWITCH
#endif
