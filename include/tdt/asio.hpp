/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_ASIO_HPP
#define TDT_ASIO_HPP /* may change: docs/compatibility.md */

/*
 * The coroutines of Asio, and of Boost.Asio, as tasks: every co_spawned awaitable, on whatever
 * executor.  The coroutines stay as they are.  Each file includes this header before Asio, or the
 * compiler does (CXXFLAGS += -include tdt/asio.hpp); the program is linked to libtdt.
 *
 *	#include <tdt/asio.hpp>
 *	#include <boost/asio.hpp>
 *
 *	awaitable<void> session(tcp::socket peer)
 *	{
 *		co_await (read_line(peer) || timeout(30s));     // a dump shows this line
 *	}
 *
 * Views show what they show with tdt/coro.hpp: an outermost coroutine is a task, named after its
 * function, with a tree of the coroutines that it awaits, each on the line of its co_await, down to
 * the operation.  Besides:
 *
 *   - The arms of `||` and `&&`, and coroutines of a parallel group, are tasks, spawned by the
 *     coroutine that awaits them; dumps show them below it.  So is an operation that is an arm.
 *   - What an operation is, is what its coroutine waits for: "async_receive" of descriptor 8, or a
 *     timer.  Asio does not say the descriptor of an operation that is awaited as a deferred one.
 *   - A coroutine that was co_spawned, and did not begin yet, is no task yet.
 *
 * A file that lacks this header is found by the linker.  The header gives the type `awaitable` an
 * ABI tag, so functions with it have other symbols there: "undefined reference to session(...)"
 * names a coroutine of such a file.  What files pass to each other without such a symbol (virtual
 * functions, members of structs) the linker does not see: the coroutine is missing from the tree of
 * the one that awaits it, which may be shown as running while it waits.  A library that hands out
 * awaitables is built with -include, too.  (An Asio whose names are in a version's namespace,
 * ASIO_VERSION_NAMESPACE, does not compile with this header.)
 *
 * How: a specialization of std::coroutine_traits, which is more constrained than that of Asio, has
 * a promise that is derived from Asio's.  No private member is used.  Tried with Asio 1.22 and
 * 1.38, and with the Boost.Asio of Boost 1.74, and a newer one (1.38.0).
 */

#if defined(ASIO_AWAITABLE_HPP) || defined(BOOST_ASIO_AWAITABLE_HPP)
#error "include tdt/asio.hpp before Asio"
#endif

#include <bit>
#include <concepts>
#include <string_view>

#include <tdt/coro.hpp>

/* --- What the compiler needs, which is of no use elsewhere ---------------------------- */

namespace tdt
{
namespace detail
{

/* --- What an operation is ------------------------------------------------------------- */

/*
 * The type that begins the operation of a coroutine which Asio makes for it (use_awaitable); void:
 * the coroutine is another one.
 */
template <template <typename> class Token, typename... Arguments> struct asio_operation {
	using type = void;
};
template <template <typename> class Token, typename Initiation, typename Executor,
	  typename... Arguments>
struct asio_operation<Token, Initiation, Token<Executor>, Arguments...> {
	using type = Initiation;
};

/* The same of an operation that is awaited without such a coroutine (deferred). */
template <typename Operation> struct asio_initiation {
	using type = Operation;
};
template <template <typename, typename, typename...> class Deferred, typename Signature,
	  typename Initiation, typename... Arguments>
struct asio_initiation<Deferred<Signature, Initiation, Arguments...>> {
	using type = Initiation;
};

/* The name of a type: its compiler knows it. */
template <typename Type> constexpr auto type_name()
{
	std::string_view name = __PRETTY_FUNCTION__;

	name.remove_prefix(name.find("Type = ") + 7);
	return name.substr(0, name.rfind(']'));
}

/* The name of an operation, by the type that begins it: "x::timer<y>::initiate_async_wait". */
template <typename Initiation> constexpr std::string_view asio_name()
{
	std::string_view type = type_name<Initiation>();
	const std::size_t at = type.rfind("::initiate_");

	if (at == type.npos)
		return {};
	if (type.substr(0, at).find("::parallel_group<") != type.npos)
		return "parallel_group";
	type.remove_prefix(at + 11);
	return type.substr(0, type.find_first_of("<>, "));
}

/* The type that begins an operation, without the wrapper of redirect_error() and its like. */
template <typename Initiation> struct asio_begins {
	using type = Initiation;
	static const auto &of(const auto &initiation) noexcept { return initiation; }
};
template <template <typename> class Wrapper, typename Inner>
	requires(requires(const Wrapper<Inner> &outer) { outer.initiation_; } ||
		 std::is_base_of_v<Inner, Wrapper<Inner>>)
struct asio_begins<Wrapper<Inner>> {
	using type = typename asio_begins<Inner>::type;
	static const auto &of(const auto &outer) noexcept
	{
		if constexpr (requires { outer.initiation_; })
			return asio_begins<Inner>::of(outer.initiation_);
		else
			return asio_begins<Inner>::of(static_cast<const Inner &>(outer));
	}
};

/*
 * The object of an operation.  What begins the operation has the object's address, and nothing
 * else: it was made of that address.  Another one is made of this, which finds out the type.
 */
struct asio_object {
	void *address;
	int *descriptor;

	template <typename Object>
		requires requires(Object &object) {
			{ object.native_handle() } -> std::same_as<int>;
		}
	operator Object *() const
	{
		auto *object = static_cast<Object *>(address);

		*descriptor = object->native_handle();
		return object;
	}
	template <typename Stream>
		requires requires(Stream &stream) {
			{ stream.lowest_layer().native_handle() } -> std::same_as<int>;
		}
	operator Stream &() const
	{
		auto *stream = static_cast<Stream *>(address);

		*descriptor = stream->lowest_layer().native_handle();
		return *stream;
	}
};

template <typename Initiation, typename Begins = typename asio_begins<Initiation>::type>
concept asio_has_descriptor = !asio_name<Initiation>().empty() &&
	sizeof(Begins) == sizeof(void *) && std::is_trivially_copyable_v<Begins> &&
	std::is_constructible_v<Begins, asio_object>;

template <asio_has_descriptor Initiation> int asio_descriptor(const Initiation &initiation)
{
	using begins = asio_begins<Initiation>;
	int descriptor = 0;
	const asio_object object = { std::bit_cast<void *>(begins::of(initiation)), &descriptor };

	(void)typename begins::type(object);
	return descriptor;
}

template <typename Initiation> constexpr tdt_wait_kind asio_kind()
{
	constexpr std::string_view type = type_name<Initiation>(), name = asio_name<Initiation>();

	if (name == "async_wait" && type.find("timer<") != type.npos)
		return TDT_WAIT_TIMER;
	return asio_has_descriptor<Initiation> || name.find("_read") != name.npos ||
			       name.find("_write") != name.npos
		       ? TDT_WAIT_IO
		       : TDT_WAIT_OTHER;
}

template <typename Initiation> struct asio_text {
	char bytes[asio_name<Initiation>().size() + 1] = {};

	constexpr asio_text()
	{
		asio_name<Initiation>().copy(bytes, asio_name<Initiation>().size());
	}
};
template <typename Initiation> inline constexpr asio_text<Initiation> asio_text_of = {};
template <typename Initiation>
inline constexpr tdt_leaf_wait asio_wait_of = { asio_kind<Initiation>(), 0, nullptr, 0,
						asio_text_of<Initiation>.bytes };

/* The wait of a coroutine that Asio makes for an operation: one of a descriptor has its own. */
template <typename Operation> struct asio_wait {
	static const tdt_leaf_wait *now() noexcept { return &asio_wait_of<Operation>; }
};
template <asio_has_descriptor Operation> struct asio_wait<Operation> {
	const Operation *operation = nullptr; /* in the coroutine */
	tdt_leaf_wait wait = asio_wait_of<Operation>;

	const tdt_leaf_wait *now() noexcept
	{
		const std::intptr_t descriptor = asio_descriptor(*operation);

		wait.object = reinterpret_cast<const void *>(descriptor);
		return &wait;
	}
};

/* --- Promises ------------------------------------------------------------------------ */

/*
 * A coroutine of Asio's own: the entry point of co_spawn(), and an arm's wrapper.  (gcc 12
 * evaluates a consteval function in a default argument only once, but not a constructor.)
 */
struct asio_plumbing {
	bool value;

	consteval asio_plumbing(std::string_view file = __builtin_FILE(),
				std::string_view function = __builtin_FUNCTION())
	    : value(file.find("asio/impl/") != file.npos || function == "awaitable_wrap")
	{
	}
};

struct asio_postponed {
	void (*begin)(void *);
	void *argument;
	std::uint64_t behalf;
};

template <typename Base, typename Operation>
struct asio_promise : promise_around<asio_promise<Base, Operation>, promise_base_of<Base>, Base,
				     asio_plumbing> {
	using asio_promise::promise_around::promise_around;
	asio_promise() = default;
	template <typename Begins, typename... Arguments>
		requires(std::is_same_v<Begins, Operation> && asio_has_descriptor<Begins>)
	explicit asio_promise(Begins &operation, Arguments &...) : wait{ &operation }
	{
	}

	[[no_unique_address]] asio_wait<Operation> wait = {};

	/* Asio resumes the innermost coroutine in a loop. */
	static constexpr bool at_once = true;
	std::uintptr_t key() noexcept
	{
		return address(static_cast<decltype(this->caller_)>(this));
	}

	/*
	 * Plumbing outside of a task knows on behalf of which task it was spawned.  The coroutine
	 * that Asio makes for an operation is never resumed: it has the one that awaits it wait, or
	 * is a task, outside of one (an arm, say).
	 */
	[[gnu::always_inline]] void begin(std::uintptr_t base) noexcept
	{
		const bool is_operation = !std::is_void_v<Operation> && this->inner == 0;
		std::uint64_t spawner = chain::spawner;

		if (begins != 0 && begins == address(this->caller_)) {
			begins = 0;
			if (begins_for->in != nullptr) {
				if (is_operation)
					this->parent = begins_for;
				else
					this->begin_in(begins_for, base);
				return;
			}
			spawner = begins_for->behalf;
		}
		if (this->inner == 0 && !is_operation) {
			this->behalf = spawner;
			return;
		}
		this->inner = 1;
		this->begin_task(base, spawner, is_operation ? asio_text_of<Operation>.bytes : "");
	}
	link &waiting() noexcept
	{
		return !std::is_void_v<Operation> && this->inner == 0 ? *this->parent : *this;
	}

	template <typename Awaited> const tdt_leaf_wait *waits_for() noexcept
	{
		using initiation = typename asio_initiation<Awaited>::type;

		if constexpr (!asio_name<Operation>().empty())
			return wait.now();
		else if constexpr (!asio_name<initiation>().empty())
			return &asio_wait_of<initiation>;
		else
			return nullptr;
	}

	/* From 1.24 on, an operation begins when the coroutine has returned to the loop. */
	static constexpr bool postpones = requires(Base &base) {
		base.after_suspend(nullptr, nullptr);
	};
	using postponed = std::conditional_t<postpones, asio_postponed, std::false_type>;
	void postpone(asio_postponed *later) noexcept
	{
		auto *context = this->resume_context_;

		if (context->after_suspend_fn_ == nullptr)
			return;
		*later = { context->after_suspend_fn_, context->after_suspend_arg_,
			   chain::spawner };
		context->after_suspend_arg_ = later;
		context->after_suspend_fn_ = [](void *argument) {
			const asio_postponed own = *static_cast<asio_postponed *>(argument);
			const on_behalf scope(own.behalf);

			own.begin(own.argument);
		};
	}
};

/* It makes the specialization below more constrained than that of Asio. */
template <typename> concept any_executor = true;

} // namespace detail
} // namespace tdt

/* Asio is yet to come. */
#define TDT__ASIO_NAMES                                                                            \
	template <typename, typename> class __attribute__((abi_tag("tdt"))) awaitable;             \
	template <typename> struct use_awaitable_t;                                                \
	namespace detail                                                                           \
	{                                                                                          \
	template <typename, typename> class awaitable_frame;                                       \
	}
namespace asio
{
TDT__ASIO_NAMES
} // namespace asio
namespace boost::asio
{
TDT__ASIO_NAMES
} // namespace boost::asio
#undef TDT__ASIO_NAMES

#define TDT__ASIO_TRAITS(asio)                                                                     \
	template <typename Value, typename Executor, typename... Arguments>                        \
		requires tdt::detail::any_executor<Executor>                                       \
	struct std::coroutine_traits<asio::awaitable<Value, Executor>, Arguments...> {             \
		using promise_type = tdt::detail::asio_promise<                                    \
			asio::detail::awaitable_frame<Value, Executor>,                            \
			typename tdt::detail::asio_operation<asio::use_awaitable_t,                \
							     Arguments...>::type>;                 \
	}
TDT__ASIO_TRAITS(asio);
TDT__ASIO_TRAITS(boost::asio);

#undef TDT__ASIO_TRAITS

#endif
