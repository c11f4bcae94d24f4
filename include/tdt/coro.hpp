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
 * coroutines includes, as -include has all files include it.  Nothing finds a file that lacks the
 * line: its coroutines run as ever, but are missing from the trees of those that await them, which
 * may be shown as running while they wait.  The program is linked to libtdt.
 *
 * An outermost coroutine is a task from the time that it first runs.  It is named after its
 * function, and ends with its body, or when it is destroyed.  The coroutines that it awaits are its
 * tree, each on the line of its co_await.  The tree is the one that a tdt::task shows
 * (tdt/coroutine.hpp).  A request is answered without waking the task, also from outside the
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
 *     several), and for those that a combinator begins (when_all).  A task that begins while its
 *     parent begins to wait is a part of it: dumps show it below its parent.
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
 * Cost (x86-64, -O2; bench/coro): an await of another coroutine takes 3 to 7 ns more, and a wait 13
 * ns, or 8 on a thread that calls tdt_worker_now().  Memory: 48 bytes in a coroutine (gcc 12), and
 * some 200 for each task.  If there is no memory for a task, its coroutines run untraced.  Nothing
 * is thrown.
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

/*
 * A variable of each thread.  Without the attribute, a shared library would call a function for
 * each access.  (A program needs no attribute, and would take an instruction more with it.)
 */
#if defined(__PIC__) && !defined(__PIE__)
#define TDT__CO_THREAD [[gnu::tls_model("initial-exec")]] inline constinit thread_local
#else
#define TDT__CO_THREAD inline constinit thread_local
#endif

namespace tdt
{
namespace detail
{

/*
 * A coroutine: as the default argument of initial_suspend(), the one that calls it.  It is a scalar
 * there, as gcc puts other temporary objects into the coroutine.
 */
#ifdef __cpp_lib_source_location
using birth = std::source_location;
using birth_argument = const void *;
#define TDT__CO_BIRTH __builtin_bit_cast(const void *, std::source_location::current())
#else
struct birth {
	const char *file, *function; /* some compilers have its result and its parameters here */
	std::uint32_t at;

	const char *file_name() const { return file; }
	const char *function_name() const { return function; }
	std::uint32_t line() const { return at; }
};
using birth_argument = birth;
#define TDT__CO_BIRTH { __builtin_FILE(), __builtin_FUNCTION(), __builtin_LINE() }
#endif

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

struct link;

/*
 * A task: an outermost coroutine with the coroutines that it awaits.  One thread at a time uses it:
 * the thread that runs the innermost coroutine.  While that coroutine runs, at depth n, the list
 * has the n places from which it was awaited; while it waits, the list has its own place too.
 */
class chain {
      public:
	/* The task on whose behalf this thread makes tasks, and which it does not run; 0: none. */
	TDT__CO_THREAD static std::uint64_t spawner = 0;

	link *innermost;

	/*
	 * Begin a task, which runs in the frame that begins at `base`, on behalf of the task
	 * `parent`, which awaits it; 0: spawned by the one that runs on this thread.  If `name`
	 * is empty, it is that of the function.  Returns NULL without memory.
	 */
	static chain *begin(link *outermost, birth where, std::uintptr_t base, std::uint64_t parent,
			    const char *name) noexcept
	{
		auto *made = new (std::nothrow) chain(outermost);
		tdt_task_attr attr = {};

		if (made == nullptr)
			return nullptr;
		attr.size = sizeof attr;
		attr.file = where.file_name();
		attr.line = where.line();
		name_task(&attr, *name != '\0' ? name : where.function_name());
		if (parent != 0) {
			attr.flags = TDT_ATTR_PARENT | TDT_ATTR_CHILD;
			attr.parent = parent;
		}
		made->task_ = tdt_task_new(&attr);
		if (made->task_ == nullptr) {
			delete made;
			return nullptr;
		}
		made->leaf_.kind = TDT_LEAF_PCS;
		made->leaf_.frames = made->places_;
		tdt_leaf_at(made->task_, &made->leaf_);
		made->enter(base);
		return made;
	}
	[[gnu::noinline]] void end() noexcept
	{
		if ((base_ & LEFT) == 0) /* or else it is destroyed while it waits */
			spawner = outer_;
		tdt_task_end(task_);
		delete this;
	}

	/* The innermost coroutine runs in the frame that begins at `base`. */
	[[gnu::always_inline]] void run_at(std::uintptr_t base) noexcept
	{
		if (base_ != base) [[unlikely]]
			enter(base);
	}

	/* One more place can be listed.  False: there is no memory. */
	[[gnu::always_inline]] bool has_room() noexcept { return leaf_.n < capacity_ || grow(); }

	/* The innermost coroutine, at `depth`, is about to await something at `place`. */
	void note(std::uint32_t depth, const void *place) noexcept { places_[depth] = place; }

	/* The first `n` places are listed. */
	void list(std::uint32_t n) noexcept
	{
		count_change();
		__atomic_store_n(&leaf_.n, n, __ATOMIC_RELEASE);
	}

	/*
	 * The thread stops to run the task, which waits at the end of the list.  Another thread may
	 * go on with it as soon as this returns.  Returns the `spawner` from here on.
	 */
	std::uint64_t leave(const tdt_leaf_wait *wait = nullptr) noexcept
	{
		std::uint64_t outer = outer_;

		leaf_.waits = wait;
		leaf_.n_waits = wait != nullptr;
		spawner = outer;
		base_ |= LEFT;
		tdt_task_leave(task_); /* it waits at the list, which is in force since it began */
		return outer;
	}

	std::uintptr_t base() const noexcept { return base_ & ~LEFT; }
	std::uint64_t id() const noexcept { return leaf_.task; }

      private:
	static constexpr std::uint32_t FEW = 8;
	static constexpr std::uintptr_t LEFT = 1; /* in `base_`: no thread runs the task */

	std::uintptr_t base_ = LEFT;  /* of the last run */
	const void **places_ = few_;  /* the outermost first; a last one, which is not listed */
	std::uint32_t capacity_ = FEW;
	tdt_handle *task_ = nullptr;
	std::uint64_t outer_ = 0; /* `spawner` outside of the run */
	tdt_leaf leaf_ = {};
	const void *few_[FEW + 1];

	explicit chain(link *outermost) : innermost(outermost) {}
	~chain()
	{
		if (places_ != few_)
			delete[] places_;
	}

	/* The list is about to change while it is in force.  Pairs with tdt__leaf_list_append(). */
	void count_change() noexcept
	{
		leaf_.changes++; /* readers copy it through the kernel */
		std::atomic_signal_fence(std::memory_order_seq_cst);
	}

	[[gnu::noinline]] void enter(std::uintptr_t base) noexcept
	{
		if ((base_ & LEFT) == 0) /* it runs, in another frame */
			tdt_task_leave(task_);
		else
			outer_ = std::exchange(spawner, 0);
		base_ = base;
		tdt_task_enter_at(task_, base);
	}

	[[gnu::noinline, gnu::cold]] bool grow() noexcept
	{
		auto **more = new (std::nothrow) const void *[2 * capacity_ + 1];

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

/*
 * The coroutine which this thread is about to begin, or its kind: an address, or 0 for none.  (As a
 * number, so that the compiler knows that no pointer of the program is stored there.)
 */
TDT__CO_THREAD std::uintptr_t begins = 0;
TDT__CO_THREAD link *begins_for = nullptr; /* awaits that one */
template <typename Promise> inline constexpr char kind_of = 0; /* its address */

inline std::uintptr_t address(const void *pointer) noexcept
{
	return reinterpret_cast<std::uintptr_t>(pointer);
}

/* The part of each promise that does not depend on its type: a coroutine in its task. */
struct link {
	chain *in = nullptr; /* nullptr: it has not begun, or has ended, or is not traced */
	union {
		birth where;          /* before it begins */
		link *parent;         /* in a task: awaits this coroutine; nullptr: nobody does */
		std::uint64_t behalf; /* not in a task: that of the coroutines that it begins */
	};
	std::uint32_t depth = 0; /* so many places of those that await it are listed */
	std::uint32_t inner = 1; /* the same with its own place, unless that is not shown; before it
				    begins: whether it is (plumbing of a library is not) */

	link() noexcept : parent(nullptr) {}
	link(const link &) = delete;
	~link()
	{
		if (in != nullptr) [[unlikely]]
			abandon();
	}

	[[gnu::always_inline]] void begin_in(link *awaiting, std::uintptr_t base) noexcept
	{
		parent = awaiting;
		in = awaiting->in;
		in->innermost = this;
		in->run_at(base);
		depth = awaiting->inner;
		inner = in->has_room() ? inner + depth : depth;
	}
	[[gnu::noinline]] void begin_task(std::uintptr_t base, std::uint64_t on_behalf_of,
					  const char *name = "") noexcept
	{
		in = chain::begin(this, where, base, on_behalf_of, name);
		parent = nullptr;
	}

	/* It awaits what follows at `place`. */
	void note(const void *place) noexcept
	{
		if (in != nullptr)
			in->note(depth, place);
	}
	/* Its place is listed. */
	void hop() noexcept
	{
		if (in != nullptr)
			in->list(inner);
	}
	[[gnu::always_inline]] void go_on(std::uintptr_t base) noexcept
	{
		begins = 0;
		if (in == nullptr)
			return;
		if (in->innermost != this) [[unlikely]] {
			leave_behind();
			if (in == nullptr)
				return;
		}
		in->run_at(base);
		in->list(depth);
	}

	/* The coroutine has ended.  `at_once`: this thread resumes the one that awaits it. */
	[[gnu::always_inline]] void end(bool at_once) noexcept
	{
		chain *task = std::exchange(in, nullptr);

		if (task == nullptr)
			return;
		task->innermost = parent;
		if (parent == nullptr)
			task->end();
		else if (!at_once)
			task->leave();
	}

      private:
	/* The coroutines that it awaits are in the task no more: it has gone on without them. */
	[[gnu::noinline, gnu::cold]] void leave_behind() noexcept
	{
		link *child = in->innermost;

		while (child != nullptr && child != this)
			child = child->parent;
		if (child == nullptr) { /* it was left behind before */
			in = nullptr;
			return;
		}
		for (child = in->innermost; child != this; child = child->parent)
			child->in = nullptr;
		in->innermost = this;
	}
	/* It is destroyed while it waits. */
	[[gnu::noinline, gnu::cold]] void abandon() noexcept
	{
		begins = 0;
		leave_behind();
		end(true);
	}
};

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
	/* The task of `waiting` waits from here on. */
	on_behalf(link &waiting, const tdt_leaf_wait *wait) noexcept : outer(chain::spawner)
	{
		if (waiting.in == nullptr)
			return;
		std::uint64_t id = waiting.in->id();

		waiting.hop();
		outer = waiting.in->leave(wait);
		chain::spawner = id;
	}
	on_behalf(const on_behalf &) = delete;
	~on_behalf()
	{
		chain::spawner = outer;
		begins = 0;
	}
};

/* An await of `Awaited` in a coroutine with that promise.  `Awaiter` is the awaiter behind it. */
template <typename Promise, typename Awaited, typename Awaiter> struct traced_await {
	static constexpr bool joins = can_join<std::remove_cvref_t<Awaited>>;

	Promise *self;
	Awaiter awaiter;
	[[no_unique_address]] std::conditional_t<joins, std::false_type,
						 typename Promise::postponed> later = {};

	using result = decltype(std::declval<Awaiter &>().await_suspend(
		std::declval<Promise &>().own_handle()));

	bool await_ready() { return awaiter.await_ready(); }

	TDT__CO_SUSPENDS result await_suspend(std::coroutine_handle<>)
	{
#ifdef __cpp_exceptions
		Promise *const own = self;

		try {
			return suspend();
		} catch (...) {
			own->go_on(own->in != nullptr ? own->in->base() : 0);
			throw; /* it was not suspended */
		}
#else
		return suspend();
#endif
	}

	[[gnu::always_inline]] decltype(auto) await_resume()
	{
		self->go_on(TDT__CO_BASE());
		return awaiter.await_resume();
	}

      private:
	/* Another thread may resume the coroutine, and destroy this object, before it returns. */
	[[gnu::always_inline]] result suspend()
	{
		using awaited = std::remove_cvref_t<Awaited>;
		Promise &own = *self;

		if constexpr (joins && Promise::at_once) {
			own.hop();
			begin_next(own, own.key());
			return awaiter.await_suspend(own.own_handle());
		} else if constexpr (joins && is_handle<result>) {
			own.hop();
			begin_next(own, kind<awaited>());
			result next = awaiter.await_suspend(own.own_handle());
			begins = address(next.address()); /* unless it has begun already */
			return next;
		} else {
			const on_behalf scope(own.waiting(), own.template waits_for<awaited>());

			if constexpr (joins)
				begin_next(own, kind<awaited>());
			if constexpr (Promise::postpones && !joins) {
				awaiter.await_suspend(own.own_handle());
				own.postpone(&later);
			} else {
				return awaiter.await_suspend(own.own_handle());
			}
		}
	}

	static void begin_next(link &awaiting, std::uintptr_t next) noexcept
	{
		begins_for = &awaiting;
		begins = next;
	}
	template <typename Task> static std::uintptr_t kind() noexcept
	{
		return address(&kind_of<typename std::coroutine_traits<Task>::promise_type>);
	}
};

/* --- Promises ------------------------------------------------------------------------ */

/* The promise of the type as a base, whose own members may have the names of the link's. */
template <typename Base> struct promise_base_of : Base, link {
	using Base::Base;
	using link::in, link::where, link::parent, link::behalf, link::depth, link::inner;
	using link::begin_in, link::begin_task, link::note, link::hop, link::go_on, link::end;
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

template <typename Base>
using around =
	std::conditional_t<!std::is_final_v<Base>, promise_base_of<Base>,
			   std::conditional_t<requires(Base &base) { base.return_void(); },
					      promise_holder_void<Base>,
					      promise_holder_value<Base>>>;

/*
 * The promise of `Base` as the library sees it: `Around` has it, and `Self` is the class derived
 * from this one.  What passes by on its way to the coroutine's own promise is noted.
 */
template <typename Self, typename Around, typename Base, typename Plumbing = std::false_type>
struct promise_around : Around {
	using Around::Around;

	using first_awaiter = decltype(std::declval<Base &>().initial_suspend());
	using last_awaiter = decltype(std::declval<Base &>().final_suspend());
	static constexpr bool is_lazy = !std::is_same_v<first_awaiter, std::suspend_never>;

	/* The header tdt/asio.hpp knows these better. */
	static constexpr bool at_once = false;   /* an awaited coroutine is always resumed here */
	static constexpr bool postpones = false; /* an operation begins after the co_await */
	using postponed = std::false_type;
	template <typename Awaited> const tdt_leaf_wait *waits_for() noexcept { return nullptr; }
	link &waiting() noexcept { return *this; } /* the coroutine that is shown to wait */

	auto own_handle() noexcept
	{
		static_assert(alignof(Base) <= 16 && alignof(Self) <= 16,
			      "a promise that is aligned to more than 16 bytes lies elsewhere");
		return std::coroutine_handle<Base>::from_promise(this->base());
	}

	[[gnu::always_inline]] void begin(std::uintptr_t base) noexcept
	{
		if (begins != address(own_handle().address()) &&
		    begins != address(&kind_of<Self>)) {
			this->begin_task(base, chain::spawner);
			return;
		}
		begins = 0;
		if (begins_for->in != nullptr)
			this->begin_in(begins_for, base);
	}

	auto initial_suspend(birth_argument born = TDT__CO_BIRTH, Plumbing plumbing = {})
	{
		struct traced_first {
			Self *self;
			[[no_unique_address]] first_awaiter awaiter;

			bool await_ready() { return awaiter.await_ready(); }
			auto await_suspend(std::coroutine_handle<>)
			{
				return awaiter.await_suspend(self->own_handle());
			}
			[[gnu::always_inline]] void await_resume()
			{
				self->begin(TDT__CO_BASE());
				awaiter.await_resume();
			}
		};
		this->where = __builtin_bit_cast(birth, born);
		this->inner = !plumbing.value; /* a library's own are not shown */
		return traced_first{ self(), this->base().initial_suspend() };
	}

	auto final_suspend() noexcept
	{
		struct traced_last {
			last_awaiter awaiter;

			bool await_ready() noexcept { return awaiter.await_ready(); }
			TDT__CO_SUSPENDS auto
			await_suspend(std::coroutine_handle<Self> ended) noexcept
			{
				return awaiter.await_suspend(ended.promise().own_handle());
			}
			void await_resume() noexcept { awaiter.await_resume(); }
		};
		using next = decltype(std::declval<last_awaiter &>().await_suspend(own_handle()));

		this->end(Self::at_once || is_handle<next>);
		return traced_last{ this->base().final_suspend() };
	}

#ifdef __cpp_exceptions
	/* If it throws, the coroutine has ended, and the caller of resume() gets the exception. */
	void unhandled_exception()
	{
		try {
			this->base().unhandled_exception();
		} catch (...) {
			this->end(false);
			throw;
		}
	}
#endif

	/*
	 * gcc 12 knows the line of the call of await_transform() only if its result has no
	 * destructor: then this is the result.
	 */
	template <typename Awaited, bool yields> struct later_await {
		Self *self;
		Awaited &&awaited;

		auto operator co_await()
		{
			return self->template await_of<Awaited, yields>(
				std::forward<Awaited>(awaited));
		}
	};
	template <typename Awaited>
	auto await_transform(Awaited &&awaited, const void *place = tdt__co_here())
	{
		return noted<Awaited, false>(std::forward<Awaited>(awaited), place);
	}
	template <typename Value>
		requires requires(Base &base, Value &&value) {
			base.yield_value(std::forward<Value>(value));
		}
	auto yield_value(Value &&yielded, const void *place = tdt__co_here())
	{
		return noted<Value, true>(std::forward<Value>(yielded), place);
	}

      private:
	Self *self() noexcept { return static_cast<Self *>(this); }

	template <typename Awaited, bool yields>
	auto noted(Awaited &&awaited, const void *place)
	{
		using await = decltype(await_of<Awaited, yields>(std::forward<Awaited>(awaited)));

		this->note(place);
		if constexpr (std::is_trivially_destructible_v<await>)
			return await_of<Awaited, yields>(std::forward<Awaited>(awaited));
		else
			return later_await<Awaited, yields>{ self(),
							     std::forward<Awaited>(awaited) };
	}

	template <typename Awaited, bool yields> auto await_of(Awaited &&awaited)
	{
		if constexpr (yields)
			return made<void>([&]() -> decltype(auto) {
				return this->base().yield_value(std::forward<Awaited>(awaited));
			});
		else if constexpr (requires(Base &base) {
				base.await_transform(std::forward<Awaited>(awaited));
			})
			return made<Awaited>([&]() -> decltype(auto) {
				return this->base().await_transform(std::forward<Awaited>(awaited));
			});
		else
			return traced_await<Self, Awaited, awaiter_type<Awaited>>{
				self(), awaiter_of(std::forward<Awaited>(awaited))
			};
	}

	/* An await of what `make` makes. */
	template <typename Awaited, typename Make> auto made(Make make)
	{
		using Made = decltype(make());

		if constexpr (std::is_same_v<awaiter_type<Made>, Made &&>)
			return traced_await<Self, Awaited, Made>{ self(), make() };
		else
			return traced_await<Self, Awaited, made_awaiter<Made>>{ self(),
										{ make() } };
	}
};

template <typename Base>
struct traced_promise : promise_around<traced_promise<Base>, around<Base>, Base> {
	using traced_promise::promise_around::promise_around;
};

} // namespace detail
} // namespace tdt

#undef TDT__CO_BIRTH
#undef TDT__CO_THREAD
#undef TDT__CO_SUSPENDS

#endif
