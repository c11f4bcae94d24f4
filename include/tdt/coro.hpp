/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_CORO_HPP
#define TDT_CORO_HPP /* may change: docs/compatibility.md */

/*
 * The coroutines of any C++20 coroutine type as tasks: of the task<T> of a library, or of your own.
 * The type and its coroutines stay as they are.  One line names the type:
 *
 *	#include <cppcoro/task.hpp>             // or your own task<T>
 *	#include <tdt/coro.hpp>
 *
 *	TDT_CORO(cppcoro::task<T>, class T);       // before the first coroutine of that type
 *
 *	cppcoro::task<int> price(int item)
 *	{
 *		co_return co_await ask_shop(item);      // a dump shows this line
 *	}
 *
 * The line belongs into the header that defines the type, or into one that every file with such
 * coroutines includes: if a file lacks it, the program violates the one-definition rule.  The
 * program is linked to libtdt.
 *
 * An outermost coroutine is a task from the time that it first runs.  It is named
 * after its function, and ends with its body, or when it is destroyed.  The coroutines that it
 * awaits are its tree, each on the line of its co_await.  The tree is the one that a tdt::task
 * shows (tdt/coroutine.hpp).  A request is answered without waking the task, also from outside the
 * process and from a core file.  While a coroutine runs, its task is that of the thread
 * (tdt_current_task_id()), and its stack is shown behind the coroutines that await it.
 *
 * These coroutines are tasks, or parts of one:
 *
 *   - A coroutine that is awaited becomes a part of the task that awaits it if its type is lazy
 *     (its initial_suspend() suspends) and cannot be copied.  It may be begun by a symmetric
 *     transfer, or by a resume() in the co_await, on whatever thread.
 *   - A coroutine of an eager type begins before it is awaited.  So it is a task of its own,
 *     spawned by the task that called it, which waits on the line of its co_await.
 *   - The same holds for the coroutines of a type that can be copied (they may be awaited by
 *     several), and for those that a combinator begins (when_all).
 *   - A generator is a task too, if its type is named.  It waits on the line of its co_yield.
 *
 * The header assumes:
 *
 *   - The promise of the type is the base of the promise that is used in its place, and both are at
 *     the same address.  So neither may be aligned to more than 16 bytes: a static_assert checks
 *     it. A final promise is a member.  (It may not have an operator new of its own.)
 *   - An await_suspend() of such a coroutine that returns a coroutine handle has it resumed by the
 *     language, on this thread.  A type that returns a handle and resumes the coroutine elsewhere
 *     has some of its runs reported as misuse (tdt/misuse.h); nothing worse happens.
 *
 * Cost (x86-64, -O2; bench/coro): an await of another coroutine takes some 20 ns more, and so does
 * a wait.  Memory: 40 bytes in each coroutine, and some 250 for each task.  If there is no memory
 * for a task, its coroutines run untraced.  Nothing is thrown.
 */

#if !defined(__cplusplus) || __cplusplus < 202002L || !defined(__cpp_impl_coroutine)
#error "tdt/coro.hpp is for C++20 and later: compile with -std=c++20"
#endif

#include <atomic>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>
#include <version>
#ifdef __cpp_lib_source_location
#include <source_location>
#endif

#include <tdt/integrate/leaf.h>

/*
 * TDT_CORO(TYPE, template parameters...): the coroutines that return TYPE are tasks.  A type that
 * is no template has no parameters: TDT_CORO(job).  A TYPE with a comma in it needs an alias
 * template.
 */
#define TDT_CORO(type, ...)                                                                        \
	template <__VA_ARGS__ __VA_OPT__(, ) class... Tdt_arguments>                               \
	struct std::coroutine_traits<type, Tdt_arguments...> {                                     \
		using promise_type = tdt::detail::traced_promise<typename type::promise_type>;     \
	}

/* --- The parts of the macro, which are of no use elsewhere --------------------------- */

/*
 * The address that this returns to.  As a default argument of await_transform() it is called in the
 * coroutine, on the line of its co_await.  (The asm keeps compilers from calling it only once.)
 */
__attribute__((noinline, visibility("hidden"))) inline const void *tdt__co_here() noexcept
{
	__asm__ volatile("");
	return __builtin_return_address(0);
}

/* Where the frame of the function begins that this is inlined into; 0: unknown. */
#if defined(__x86_64__)
#define TDT__CO_BASE() reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa())
#elif !defined(__clang__)
#define TDT__CO_BASE() reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0))
#else
#define TDT__CO_BASE() std::uintptr_t(0)
#endif

/*
 * Clang may keep the variables of an inlined await_suspend() in the coroutine, which another thread
 * may have resumed before the function returns.
 */
#if defined(__clang__)
#define TDT__CO_SUSPENDS [[gnu::noinline]]
#else
#define TDT__CO_SUSPENDS
#endif

namespace tdt
{
namespace detail
{

/* A coroutine: as a default argument of initial_suspend(), the one that calls it. */
struct origin {
	const char *file;
	const char *function; /* some compilers have its result and its parameters here */
	std::uint32_t line;

#ifdef __cpp_lib_source_location
	consteval origin(std::source_location here = std::source_location::current())
	    : file(here.file_name()), function(here.function_name()), line(here.line())
	{
	}
#else
	consteval origin(const char *file_ = __builtin_FILE(),
			 const char *function_ = __builtin_FUNCTION(),
			 std::uint32_t line_ = __builtin_LINE())
	    : file(file_), function(function_), line(line_)
	{
	}
#endif
};

/* Name the task after a function, without the function's result and parameters. */
inline void name_task(tdt_task_attr *attr, const char *function) noexcept
{
	const char *from = function, *end = function;

	for (int depth = 0; *end != '\0' && (depth != 0 || *end != '('); end++) {
		depth += (*end == '<') - (*end == '>');
		if (*end == ' ' && depth == 0)
			from = end + 1;
	}
	end += std::strncmp(end, "()", 2) == 0 && end - from >= 8 &&
		       std::memcmp(end - 8, "operator", 8) == 0
		       ? 2
		       : 0;
	attr->default_name = from;
	attr->default_name_length = static_cast<std::size_t>(end - from);
}

/*
 * A task: an outermost coroutine with the coroutines that it awaits.  One thread at a time uses it:
 * the thread that runs the innermost coroutine.  While that coroutine runs, at depth n, the list
 * has the n places from which it was awaited; while it waits, the list has its own place too.
 */
class chain {
      public:
	/* The task on whose behalf this thread makes tasks, and which it does not run; 0: none. */
	static inline constinit thread_local std::uint64_t spawner = 0;

	/*
	 * Begin a task, which runs in the frame that begins at `base`, on behalf of the task
	 * `parent`; 0: of the one that runs on this thread.  Returns NULL without memory.
	 */
	static chain *begin(const origin &where, std::uintptr_t base,
			    std::uint64_t parent = spawner) noexcept;
	void end() noexcept
	{
		spawner = outer_;
		tdt_task_end(task_);
		delete this;
	}

	/* The innermost coroutine, at `depth`, goes on in the frame that begins at `base`. */
	[[gnu::always_inline]] void go_on(std::uint32_t depth, std::uintptr_t base) noexcept
	{
		if (!runs_ || base_ != base) [[unlikely]]
			enter(base);
		if (leaf_.n != depth)
			change(depth);
	}

	/* It awaits at `place` a coroutine that runs at once. */
	void hop(std::uint32_t depth, const void *place) noexcept
	{
		if (depth >= capacity_ && !grow()) [[unlikely]]
			return;
		places_[depth] = place;
		change(depth + 1);
	}

	/*
	 * It waits at `place`; nullptr: where it is.  Another thread may resume it as soon as this
	 * returns.
	 */
	void wait(std::uint32_t depth, const void *place, const tdt_leaf_wait *wait) noexcept
	{
		if (place != nullptr)
			hop(depth, place);
		leaf_.waits = wait;
		leaf_.n_waits = wait != nullptr;
		tdt_leaf_at(task_, &leaf_);
		leave();
	}

	/* The thread stops to run the task, which may go on elsewhere. */
	void leave() noexcept
	{
		spawner = outer_;
		runs_ = false;
		tdt_task_leave(task_);
	}

	/* The coroutine was not suspended after all. */
	void resume(std::uint32_t depth) noexcept { go_on(depth, base_); }

	std::uint64_t id() const noexcept { return id_; }

      private:
	static constexpr std::uint32_t FEW = 8;

	tdt_handle *task_ = nullptr;
	std::uint64_t id_ = 0;
	std::uint64_t outer_ = 0; /* `spawner` outside of the run */
	std::uintptr_t base_ = 0; /* of the last run */
	bool runs_ = false;
	std::uint32_t capacity_ = FEW;
	const void **places_ = few_; /* the outermost first */
	const void *few_[FEW];
	tdt_leaf leaf_ = {};

	chain() = default;
	chain(const chain &) = delete;
	~chain()
	{
		if (places_ != few_)
			delete[] places_;
	}

	/* The list is about to change while it is in force.  Pairs with tdt__leaf_list_append(). */
	void count_change() noexcept
	{
		__atomic_store_n(&leaf_.changes, leaf_.changes + 1, __ATOMIC_RELAXED);
		std::atomic_signal_fence(std::memory_order_seq_cst);
	}
	void change(std::uint32_t n) noexcept
	{
		count_change();
		__atomic_store_n(&leaf_.n, n < capacity_ ? n : capacity_, __ATOMIC_RELEASE);
	}

	[[gnu::noinline]] void enter(std::uintptr_t base) noexcept
	{
		if (runs_) /* in another frame */
			tdt_task_leave(task_);
		else
			outer_ = std::exchange(spawner, 0);
		base_ = base;
		runs_ = true;
		tdt_task_enter_at(task_, base);
	}

	[[gnu::noinline, gnu::cold]] bool grow() noexcept
	{
		auto **more = new (std::nothrow) const void *[2 * capacity_];

		if (more == nullptr)
			return false;
		std::memcpy(more, places_, capacity_ * sizeof places_[0]);
		count_change();
		leaf_.frames = more;
		if (places_ != few_)
			delete[] places_;
		places_ = more;
		capacity_ *= 2;
		return true;
	}
};

[[gnu::noinline]] inline chain *chain::begin(const origin &where, std::uintptr_t base,
					     std::uint64_t parent) noexcept
{
	auto *made = new (std::nothrow) chain;
	tdt_task_attr attr = {};

	if (made == nullptr)
		return nullptr;
	attr.size = sizeof attr;
	attr.file = where.file;
	attr.line = where.line;
	name_task(&attr, where.function);
	if (parent != 0) {
		attr.flags = TDT_ATTR_PARENT;
		attr.parent = parent;
	}
	made->task_ = tdt_task_new(&attr);
	if (made->task_ == nullptr) {
		delete made;
		return nullptr;
	}
	made->id_ = tdt_handle_id(made->task_);
	made->leaf_.kind = TDT_LEAF_PCS;
	made->leaf_.frames = made->places_;
	tdt_leaf_at(made->task_, &made->leaf_);
	made->enter(base);
	return made;
}

/* The part of each promise that does not depend on its type: a coroutine in its task. */
struct link {
	chain *in = nullptr;     /* nullptr: it has not begun, or has ended, or is not traced */
	link *parent = nullptr;  /* awaits this coroutine */
	link *child = nullptr;   /* is awaited */
	std::uint32_t depth = 0; /* the number of parents that are shown */
	bool hidden = false;     /* plumbing of a library, which is not shown */

	link() = default;
	link(const link &) = delete;
	~link()
	{
		for (link *inner = child; inner != nullptr; inner = inner->child)
			inner->in = nullptr;
		if (child != nullptr)
			child->parent = nullptr;
		end(true);
	}

	void begin_in(link *awaiting, std::uintptr_t base) noexcept
	{
		parent = awaiting;
		parent->child = this;
		in = parent->in;
		depth = parent->depth + !parent->hidden;
		if (in != nullptr)
			in->go_on(depth, base);
	}

	/* The coroutine has ended.  `at_once`: this thread resumes the one that awaits it. */
	void end(bool at_once) noexcept
	{
		if (parent != nullptr) {
			parent->child = parent->child == this ? nullptr : parent->child;
			if (in != nullptr && !at_once)
				in->leave();
		} else if (in != nullptr) {
			in->end();
		}
		in = nullptr;
		parent = nullptr;
	}
};

/* The coroutine or promise that awaits the one which this thread is about to begin. */
struct hand_over {
	link *awaiting;
	const void *kind; /* of the promise of the awaited coroutine */
	const void *next; /* identifies the awaited coroutine; nullptr: the next one of that kind */
};
inline constinit thread_local hand_over about_to_begin = {};
template <typename Promise> inline constexpr char kind_of = 0; /* its address */

/* A coroutine that another one may take into its task: of a lazy type that cannot be copied. */
template <typename Task>
concept can_join = requires {
	requires std::is_base_of_v<link, typename std::coroutine_traits<Task>::promise_type>;
	requires std::coroutine_traits<Task>::promise_type::is_lazy;
	requires !std::is_copy_constructible_v<Task>;
};

template <typename Result>
concept is_handle = !std::is_void_v<Result> && !std::is_same_v<Result, bool>;

template <typename Awaited> decltype(auto) awaiter_of(Awaited &&awaited)
{
	if constexpr (requires { std::forward<Awaited>(awaited).operator co_await(); })
		return std::forward<Awaited>(awaited).operator co_await();
	else if constexpr (requires { operator co_await(std::forward<Awaited>(awaited)); })
		return operator co_await(std::forward<Awaited>(awaited));
	else
		return std::forward<Awaited>(awaited);
}
template <typename Awaited> using awaiter_type = decltype(awaiter_of(std::declval<Awaited>()));

/* The awaiter of what the type's own await_transform() made, which must live as long. */
template <typename Made> struct made_awaiter {
	Made made;
	awaiter_type<Made> awaiter = awaiter_of(static_cast<Made &&>(made));

	bool await_ready() { return awaiter.await_ready(); }
	template <typename Handle> auto await_suspend(Handle handle)
	{
		return awaiter.await_suspend(handle);
	}
	decltype(auto) await_resume() { return awaiter.await_resume(); }
};

/* The thread does not run the task in this block, where coroutines begin on the task's behalf. */
struct on_behalf {
	std::uint64_t outer;

	explicit on_behalf(std::uint64_t id) noexcept : outer(std::exchange(chain::spawner, id)) {}
	on_behalf(const on_behalf &) = delete;
	~on_behalf()
	{
		chain::spawner = outer;
		about_to_begin.awaiting = nullptr;
	}
};

/* An await of `Awaited` in a coroutine with that promise.  `Awaiter` is the awaiter behind it. */
template <typename Promise, typename Awaited, typename Awaiter> struct traced_await {
	Promise *self;
	const void *place;
	Awaiter awaiter;
	[[no_unique_address]] typename Promise::postponed later = {};

	static constexpr bool joins = can_join<std::remove_cvref_t<Awaited>>;
	using result = decltype(std::declval<Awaiter &>().await_suspend(
		std::declval<Promise &>().own_handle()));

	bool await_ready() { return awaiter.await_ready(); }

	TDT__CO_SUSPENDS result await_suspend(std::coroutine_handle<>)
	{
#ifdef __cpp_exceptions
		try {
			return suspend();
		} catch (...) {
			about_to_begin.awaiting = nullptr;
			if (self->in != nullptr)
				self->in->resume(self->depth);
			throw;
		}
#else
		return suspend();
#endif
	}

	[[gnu::always_inline]] decltype(auto) await_resume()
	{
		if (self->in != nullptr)
			self->in->go_on(self->depth, TDT__CO_BASE());
		return awaiter.await_resume();
	}

      private:
	/* Another thread may resume the coroutine, and destroy this object, before it returns. */
	[[gnu::always_inline]] result suspend()
	{
		if constexpr (joins)
			about_to_begin = { self,
					   &kind_of<typename std::coroutine_traits<
						   std::remove_cvref_t<Awaited>>::promise_type>,
					   self->next_of() };
		if constexpr (joins && (Promise::at_once || is_handle<result>)) {
			if (self->in != nullptr && !self->hidden)
				self->in->hop(self->depth, place);
			if constexpr (Promise::at_once) {
				return awaiter.await_suspend(self->own_handle());
			} else {
				result next = awaiter.await_suspend(self->own_handle());

				if (about_to_begin.awaiting != nullptr)
					about_to_begin.next = next.address();
				return next;
			}
		} else {
			const on_behalf scope(self->in != nullptr ? wait() : chain::spawner);

			if constexpr (Promise::postpones) {
				awaiter.await_suspend(self->own_handle());
				self->postpone(&later);
			} else {
				return awaiter.await_suspend(self->own_handle());
			}
		}
	}

	std::uint64_t wait() noexcept
	{
		std::uint64_t id = self->in->id();

		self->in->wait(self->depth, self->hidden ? nullptr : place,
			       Promise::template waits_for<std::remove_cvref_t<Awaited>>());
		return id;
	}
};

/* --- Promises ------------------------------------------------------------------------ */

/* The promise of the type as a base. */
template <typename Base, typename Link = link> struct promise_base_of : Base, Link {
	using Base::Base;
	Base &base() noexcept { return *this; }
};

/* A final promise as the first member. */
template <typename Base> struct promise_member {
	Base held;
};
template <typename Base> struct promise_holder : promise_member<Base>, link {
	promise_holder() = default;
	template <typename... Arguments>
		requires(sizeof...(Arguments) > 0 && std::is_constructible_v<Base, Arguments...>)
	explicit promise_holder(Arguments &&...arguments)
	    : promise_member<Base>{ Base(std::forward<Arguments>(arguments)...) }
	{
	}
	Base &base() noexcept { return this->held; }
	auto get_return_object() { return base().get_return_object(); }
	void unhandled_exception() { base().unhandled_exception(); }
};
template <typename Base> struct promise_holder_void : promise_holder<Base> {
	using promise_holder<Base>::promise_holder;
	void return_void() { this->base().return_void(); }
};
template <typename Base> struct promise_holder_value : promise_holder<Base> {
	using promise_holder<Base>::promise_holder;
	template <typename Value> void return_value(Value &&value)
	{
		this->base().return_value(std::forward<Value>(value));
	}
};

template <typename Base> auto around_promise()
{
	if constexpr (!std::is_final_v<Base>)
		return std::type_identity<promise_base_of<Base>>();
	else if constexpr (requires(Base &base) { base.return_void(); })
		return std::type_identity<promise_holder_void<Base>>();
	else
		return std::type_identity<promise_holder_value<Base>>();
}

/* Whether the promise has an await_transform(), which an await must not pass by. */
struct transforms {
	void await_transform();
};
template <typename Base> struct transforms_twice : Base, transforms {};
template <typename Base, bool = std::is_final_v<Base>>
inline constexpr bool has_transform = !requires { &transforms_twice<Base>::await_transform; };
template <typename Base>
inline constexpr bool has_transform<Base, true> = requires(Base &base) {
	base.await_transform(std::suspend_always());
};

/*
 * The promise of `Base` as the library sees it: `Around` has it, and `Self` is the class derived
 * from this one.  What passes by on its way to the coroutine's own promise is noted.
 */
template <typename Self, typename Around, typename Base, typename Origin = origin>
struct promise_around : Around {
	using Around::Around;

	using first_awaiter = decltype(std::declval<Base &>().initial_suspend());
	using last_awaiter = decltype(std::declval<Base &>().final_suspend());
	static constexpr bool is_lazy = !std::is_same_v<first_awaiter, std::suspend_never>;

	/* The header tdt/asio.hpp knows these better. */
	static constexpr bool at_once = false;   /* an awaited coroutine is always resumed here */
	static constexpr bool postpones = false; /* an operation begins after the co_await */
	struct postponed {};
	template <typename Awaited> static constexpr const tdt_leaf_wait *waits_for()
	{
		return nullptr;
	}

	auto own_handle() noexcept
	{
		static_assert(alignof(Base) <= 16 && alignof(Self) <= 16,
			      "a promise that is aligned to more than 16 bytes lies elsewhere");
		return std::coroutine_handle<Base>::from_promise(this->base());
	}

	/* An awaited coroutine is identified by the handle that its awaiter returns. */
	const void *next_of() const noexcept { return nullptr; }
	bool is_next(const void *next) noexcept
	{
		return next == nullptr || next == own_handle().address();
	}

	void begin(const origin &where, std::uintptr_t base) noexcept
	{
		link *outer = std::exchange(about_to_begin.awaiting, nullptr);

		if (outer != nullptr && about_to_begin.kind == &kind_of<Self> &&
		    self()->is_next(about_to_begin.next))
			this->begin_in(outer, base);
		else
			this->in = chain::begin(where, base);
	}

	auto initial_suspend(Origin where = {})
	{
		struct traced_first {
			Self *self;
			Origin where;
			first_awaiter awaiter;

			bool await_ready() { return awaiter.await_ready(); }
			auto await_suspend(std::coroutine_handle<>)
			{
				return awaiter.await_suspend(self->own_handle());
			}
			[[gnu::always_inline]] void await_resume()
			{
				self->begin(where, TDT__CO_BASE());
				awaiter.await_resume();
			}
		};
		return traced_first{ self(), where, this->base().initial_suspend() };
	}

	auto final_suspend() noexcept
	{
		struct traced_last {
			Self *self;
			last_awaiter awaiter;

			bool await_ready() noexcept
			{
				self->end(Self::at_once ||
					  is_handle<decltype(awaiter.await_suspend(
						  self->own_handle()))>);
				return awaiter.await_ready();
			}
			TDT__CO_SUSPENDS auto await_suspend(std::coroutine_handle<>) noexcept
			{
				return awaiter.await_suspend(self->own_handle());
			}
			void await_resume() noexcept { awaiter.await_resume(); }
		};
		return traced_last{ self(), this->base().final_suspend() };
	}

	/*
	 * gcc 12 knows the line of the call of await_transform() only if its result has no
	 * destructor.
	 */
	template <typename Awaited, bool yields> struct noted_await {
		Self *self;
		const void *place;
		Awaited &&awaited;

		auto operator co_await()
		{
			if constexpr (yields)
				return self->template made<void>(place, [this]() -> decltype(auto) {
					return self->base().yield_value(
						std::forward<Awaited>(awaited));
				});
			else if constexpr (has_transform<Base>)
				return self->template made<Awaited>(
					place, [this]() -> decltype(auto) {
						return self->base().await_transform(
							std::forward<Awaited>(awaited));
					});
			else
				return traced_await<Self, Awaited, awaiter_type<Awaited>>{
					self, place, awaiter_of(std::forward<Awaited>(awaited))
				};
		}
	};
	template <typename Awaited>
	auto await_transform(Awaited &&awaited, const void *place = tdt__co_here())
	{
		return noted_await<Awaited, false>{ self(), place,
						    std::forward<Awaited>(awaited) };
	}
	template <typename Value>
		requires requires(Base &base, Value &&value) {
			base.yield_value(std::forward<Value>(value));
		}
	auto yield_value(Value &&value, const void *place = tdt__co_here())
	{
		return noted_await<Value, true>{ self(), place, std::forward<Value>(value) };
	}

      private:
	Self *self() noexcept { return static_cast<Self *>(this); }

	/* An await of what `make` makes. */
	template <typename Awaited, typename Make> auto made(const void *place, Make make)
	{
		using Made = decltype(make());

		if constexpr (std::is_same_v<awaiter_type<Made>, Made &&>)
			return traced_await<Self, Awaited, Made>{ self(), place, make() };
		else
			return traced_await<Self, Awaited, made_awaiter<Made>>{ self(), place,
										{ make() } };
	}
};

template <typename Base>
struct traced_promise
    : promise_around<traced_promise<Base>, typename decltype(around_promise<Base>())::type, Base> {
	using promise_around<traced_promise<Base>, typename decltype(around_promise<Base>())::type,
			     Base>::promise_around;
};

} // namespace detail
} // namespace tdt

#undef TDT__CO_SUSPENDS

#endif
