/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_COROUTINE_HPP
#define TDT_COROUTINE_HPP /* stable from 1.0: docs/compatibility.md */

/*
 * C++20 coroutines as futures, and futures in coroutines.  This header needs no library: a program
 * may include it alone.  (It is not part of tdt/tdt.h, which is C.)
 *
 *	tdt::task<std::string> read_line(connection &from)
 *	{
 *		std::string line;
 *
 *		while (!ends(line))
 *			co_await read_some(from, line);         // a tdt_future, which is taken over
 *		co_return line;
 *	}
 *
 *	tdt::task<> greet(connection &peer)
 *	{
 *		auto name = co_await read_line(peer);           // a task: its value, or a throw
 *		...
 *	}
 *
 *	tdt_traced traced = tdt_traced(greet(peer).release());  // a tdt_future, for any runtime
 *
 * A coroutine runs only while it is polled.  A poll of the outermost coroutine polls the future
 * that this coroutine awaits, and so on down to the leaf.  With n levels there are n nested calls,
 * each of about 150 bytes of stack and 6 ns (x86-64, -O2).  If a leaf is ready, the nested polls
 * return level by level, and each coroutine is resumed from a loop.  Therefore a series of awaits
 * that all complete at once does not make the stack grow.
 *
 * Exceptions: an exception that leaves a coroutine is thrown again where the coroutine is awaited.
 * An exception that leaves the outermost coroutine ends the future as TDT_PANICKED. release()
 * accepts a place to store it; nothing is printed.  No exception leaves a poll.  A future that ends
 * as TDT_PANICKED throws tdt::panicked where it is awaited.  Without exceptions (-fno-exceptions),
 * such a future instead ends the coroutine that awaits it as TDT_PANICKED, and so on outwards.
 * These coroutines are not resumed; they are destroyed when the outermost one is dropped.
 *
 * Cancelling: dropping the future, or destroying the task, destroys the coroutines level by level
 * from the leaf outwards.  What a coroutine awaits is destroyed before the coroutine's variables.
 *
 * Memory: a coroutine is one allocation; awaits and release() allocate nothing.  If the allocation
 * fails, the task is empty.  Then release() returns TDT_FUTURE_NONE with errno ENOMEM, awaiting the
 * task throws std::bad_alloc, the coroutine's parameters are destroyed, and its body never runs.
 *
 * Threads: a suspended coroutine belongs to no thread, and each poll may be on another thread.
 *
 * How the frames of coroutines come into a backtrace.  A suspended coroutine has no frame on the
 * stack, and a coroutine that is resumed continues *behind* its co_await.  So it cannot itself poll
 * the future that it awaits.  But every co_await calls await_suspend(), and debug information knows
 * that the return address of that call is in the coroutine, on the line of the co_await.  So the
 * awaited future is polled from a made-up frame.  The made-up frame has that return address, and it
 * holds the values that the coroutine's call-frame information reads from the stack there.  It is
 * as large as the coroutine's frame was, and a frame pointer leads to it.  The stack walk of tdt,
 * gdb and tracers step through it to the poll above.  Nothing ever returns to the made-up frame.
 *
 * The three functions that need exact registers and an exact stack are written in assembly, outside
 * of all C++ functions.  Therefore no option of the compiler (-finstrument-functions, -pg,
 * --coverage, stack protectors, sanitizers, -mstackrealign, LTO and others) can put code into them.
 * This is for x86-64 and aarch64, with gcc and clang.  On other machines coroutines work the same,
 * but their trees show the leaf alone.  The assembly is in AT&T syntax, so compile without
 * -masm=intel.  A header unit contains no assembly, so include this header, do not import it.
 */

#if !defined(__cplusplus) || __cplusplus < 202002L || !defined(__cpp_impl_coroutine)
#error "tdt/coroutine.hpp is for C++20 and later: compile with -std=c++20"
#endif

#include <cerrno>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <tdt/async.h>
#include <tdt/future.h>

#if (defined(__x86_64__) || defined(__aarch64__)) && defined(__LP64__) &&                          \
	defined(__GCC_HAVE_DWARF2_CFI_ASM)
#define TDT__CO_FRAMES 1
#else
#define TDT__CO_FRAMES 0
#endif

namespace tdt
{

/* Thrown at the await of a future that ends as TDT_PANICKED. */
struct panicked : std::exception {
	const char *what() const noexcept override { return "a future ended as TDT_PANICKED"; }
};

/*
 * A tdt_future with an owner: it is dropped when this object is destroyed.  (A plain tdt_future is
 * not dropped automatically.)
 */
class [[nodiscard]] future {
      public:
	future() noexcept = default;
	explicit future(tdt_future owned) noexcept : owned_(owned) {}
	future(future &&other) noexcept : owned_(other.release()) {}
	future &operator=(future &&other) noexcept
	{
		if (this != &other) {
			tdt_future_drop(&owned_);
			owned_ = other.release();
		}
		return *this;
	}
	~future() { tdt_future_drop(&owned_); }

	/* Release the future: the caller owns it now. */
	tdt_future release() noexcept { return std::exchange(owned_, TDT_FUTURE_NONE); }
	const tdt_future &get() const noexcept { return owned_; }
	explicit operator bool() const noexcept { return !tdt_future_is_none(&owned_); }

      private:
	tdt_future owned_ = TDT_FUTURE_NONE;
};

template <typename T = void> class task;

namespace detail
{

/*
 * The place of a coroutine's await, as a call would leave it on the stack: the return address of
 * the call, and the size of the coroutine's frame during the call.  `cfa` is the end of that
 * frame, known while the coroutine runs.  The assembly below knows this layout.
 */
struct await_place {
	const void *pc = nullptr;
	std::size_t size = 0;
	const char *cfa = nullptr;
#ifdef __aarch64__
	std::size_t fp = 0; /* how far the frame record is below `cfa`; 0: there is none */
#endif
};

/* The part of a coroutine's promise that does not depend on the type of its value. */
struct coroutine {
	await_place place;
	void *frame = nullptr;                 /* the address of the coroutine's handle */
	const tdt_future *awaited = nullptr;   /* in the frame; nullptr: not begun yet */
	tdt_poll_t awaited_end = TDT_PENDING;
	bool ended = false;
	bool failed = false;
	std::exception_ptr own_error;
	std::exception_ptr *error = &own_error; /* stores the exception that leaves the coroutine */
};

/* Suspends at every co_await: the awaited future is polled by tdt__co_poll() alone. */
struct awaiter {
	coroutine *self;

#if TDT__CO_FRAMES
	/*
	 * Store the place of this call in `self->place`.  The result is always true.  The
	 * compiler must not know that: the call could become a jump, which has no return address.
	 */
	__attribute__((visibility("hidden"))) bool await_suspend(std::coroutine_handle<>) noexcept
		__asm__("tdt__co_suspend");
#else
	bool await_suspend(std::coroutine_handle<>) noexcept { return true; }
#endif
};

#if TDT__CO_FRAMES
static_assert(offsetof(awaiter, self) == 0 && offsetof(coroutine, place) == 0 &&
		      offsetof(await_place, pc) == 0 && offsetof(await_place, size) == 8 &&
		      offsetof(await_place, cfa) == 16,
	      "the assembly of tdt/coroutine.hpp knows these");
#ifdef __aarch64__
static_assert(offsetof(await_place, fp) == 24, "the assembly knows this, too");
#endif
#endif

} // namespace detail
} // namespace tdt

/*
 * These functions appear on captured stacks.  Therefore they have names that the printer recognizes
 * and leaves out.  Each module has copies of its own, because they may change from version to
 * version.
 */
#define TDT__CO_LOCAL extern "C" inline __attribute__((visibility("hidden")))

extern "C" typedef tdt_poll_t tdt__co_poll_fn(const tdt::detail::coroutine *self,
					      tdt_context *cx) noexcept;

/*
 * A poll must not unwind.  If one does, std::terminate() ends the process here, because nothing may
 * unwind into the made-up frame.
 */
TDT__CO_LOCAL __attribute__((noinline)) tdt_poll_t
tdt__co_poll_awaited(const tdt::detail::coroutine *self, tdt_context *cx) noexcept
{
	return tdt_future_poll(self->awaited, cx);
}

/*
 * tdt__co_poll_from(self, cx, poll) calls `poll`(`self`, `cx`) from a made-up frame of
 * `self->place.size` bytes, whose call returns to `self->place.pc`.
 *
 * tdt__co_resume_at(frame, cfa) resumes the coroutine `frame` and stores the end of its stack
 * frame in `*cfa`.  The first word of a coroutine is the function that resumes it.
 */
#if TDT__CO_FRAMES
#define TDT__CO_ASM extern "C" __attribute__((visibility("hidden")))

TDT__CO_ASM tdt_poll_t tdt__co_poll_from(const tdt::detail::coroutine *self, tdt_context *cx,
					 tdt__co_poll_fn *poll);
TDT__CO_ASM void tdt__co_resume_at(void *frame, const char **cfa);

#undef TDT__CO_ASM

/*
 * Every object file that includes this header has these functions, and the linker keeps one copy (a
 * COMDAT group).  Link-time optimization puts the assembly of several files into one.  There
 * .ifndef makes the assembler take the first copy only.  Link-time optimization may also discard
 * the symbols, so sizes are computed from local labels.
 */
#ifdef __x86_64__
#define TDT__CO_ENTRY "endbr64\n\t"
#else
#define TDT__CO_ENTRY "hint #34\n\t" /* bti c */
#endif
#define TDT__CO_BEGIN(name)                                                                        \
	".p2align 4\n\t.weak " name "\n\t.hidden " name "\n\t.type " name ", @function\n"          \
	name ":\n2:\n\t.cfi_startproc\n\t" TDT__CO_ENTRY
#define TDT__CO_END(name) ".cfi_endproc\n\t.size " name ", . - 2b\n\t"

#ifdef __x86_64__
/*
 * The made-up frame, from its end (rbx) down:
 *
 *	-8	the return address: 1: in tdt__co_poll_from
 *	-16	the caller's rbp, for walks along frame pointers; the made-up rbp points here
 *	-24	rbx, six times.  Where gcc realigns the stack, it may save the end of the frame
 *	...	below rbp, among at most six saved registers, and the call-frame information
 *	-64	reads it from there.  (A coroutine that does not realign may have saved its
 *		caller's rbp here.  Nothing needs that value: at 1: the rule of rbp is its own.)
 *	-size	where the call of await_suspend() was made; `pc` lies below
 *
 * The call-frame information of 1: is that of the nop before it, since lookups subtract one from
 * return addresses.  It needs rsp only, which is right after any frame.  It marks the caller's r12
 * to r15 as unknown, because the made-up frame has nothing but rbx in the places where the
 * coroutine saved them.
 */
__asm__(".ifndef tdt__co_poll_from\n\t"
	".pushsection .text.tdt__co_poll_from, \"axG\", @progbits, tdt__co_poll_from, comdat\n\t"
	TDT__CO_BEGIN("tdt__co_poll_from")
	"push %rbp\n\t"
	".cfi_def_cfa_offset 16\n\t"
	".cfi_offset %rbp, -16\n\t"
	"push %rbx\n\t"
	".cfi_def_cfa_offset 24\n\t"
	".cfi_offset %rbx, -24\n\t"
	"sub $8, %rsp\n\t"
	".cfi_def_cfa_offset 32\n\t"
	"mov %rsp, %rbx\n\t"
	".cfi_remember_state\n\t"
	".irp saved, %r12, %r13, %r14, %r15\n\t"
	".cfi_undefined \\saved\n\t"
	".endr\n\t"
	"nop\n\t"
	"1:\n\t"
	".cfi_restore_state\n\t"
	".cfi_def_cfa %rbx, 32\n\t"
	"lea 1b(%rip), %rax\n\t"
	"push %rax\n\t"
	"push %rbp\n\t"
	".rept 6\n\t"
	"push %rbx\n\t"
	".endr\n\t"
	"mov %rbx, %rax\n\t"
	"sub 8(%rdi), %rax\n\t"
	"mov %rax, %rsp\n\t"
	/* The call from the made-up frame, and its rbp, as a function that is called saves it. */
	"push (%rdi)\n\t"
	"lea -16(%rbx), %rax\n\t"
	"push %rax\n\t"
	"mov %rsp, %rbp\n\t"
	".cfi_remember_state\n\t"
	".cfi_def_cfa %rsp, 16\n\t"
	".cfi_undefined %rbx\n\t"
	"call *%rdx\n\t"
	".cfi_restore_state\n\t"
	"mov %rbx, %rsp\n\t"
	".cfi_def_cfa %rsp, 32\n\t"
	"add $8, %rsp\n\t"
	".cfi_def_cfa_offset 24\n\t"
	"pop %rbx\n\t"
	".cfi_def_cfa_offset 16\n\t"
	"pop %rbp\n\t"
	".cfi_def_cfa_offset 8\n\t"
	"ret\n\t"
	TDT__CO_END("tdt__co_poll_from")

	TDT__CO_BEGIN("tdt__co_resume_at")
	"lea 8(%rsp), %rax\n\t"
	"mov %rax, (%rsi)\n\t"
	"jmp *(%rdi)\n\t"
	TDT__CO_END("tdt__co_resume_at")

	/*
	 * awaiter::await_suspend().  The frame of the coroutine ends at `self->place.cfa`, and
	 * begins above our return address.
	 */
	TDT__CO_BEGIN("tdt__co_suspend")
	"mov (%rdi), %rcx\n\t"
	"mov (%rsp), %rax\n\t"
	"mov %rax, (%rcx)\n\t"
	"mov 16(%rcx), %rax\n\t"
	"sub %rsp, %rax\n\t"
	"sub $8, %rax\n\t"
	"mov %rax, 8(%rcx)\n\t"
	"mov $1, %eax\n\t"
	"ret\n\t"
	TDT__CO_END("tdt__co_suspend")
	".popsection\n\t"
	".endif");
#else
/*
 * The made-up frame ends where the frame of tdt__co_poll_from begins (x19).  If the coroutine keeps
 * a frame pointer, its frame record lies `fp` bytes below that end, and has this function's x29 and
 * the return address 1:.  If it keeps none, the return address may be in any word, so all words are
 * 1:.  (What the walk takes for x29 is wrong then.  But at 1: the rule of x29 is its own.)
 *
 * The call-frame information of 1: is that of the nop before it, since lookups subtract one from
 * return addresses.  It needs sp only, which is right after any frame.  It marks the caller's x20
 * to x28 as unknown, because the made-up frame does not have them.
 */
__asm__(".ifndef tdt__co_poll_from\n\t"
	".pushsection .text.tdt__co_poll_from, \"axG\", @progbits, tdt__co_poll_from, comdat\n\t"
	TDT__CO_BEGIN("tdt__co_poll_from")
	"stp x29, x30, [sp, #-32]!\n\t"
	".cfi_def_cfa_offset 32\n\t"
	".cfi_offset x29, -32\n\t"
	".cfi_offset x30, -24\n\t"
	"str x19, [sp, #16]\n\t"
	".cfi_offset x19, -16\n\t"
	"mov x29, sp\n\t"
	"mov x19, sp\n\t"
	".cfi_remember_state\n\t"
	".irp saved, x20, x21, x22, x23, x24, x25, x26, x27, x28\n\t"
	".cfi_undefined \\saved\n\t"
	".endr\n\t"
	"nop\n\t"
	"1:\n\t"
	".cfi_restore_state\n\t"
	".cfi_def_cfa x19, 32\n\t"
	"adr x9, 1b\n\t"
	"mov x10, x29\n\t"
	"ldp x12, x13, [x0]\n\t"
	"ldr x14, [x0, #24]\n\t"
	"sub x11, x19, x13\n\t"
	"mov sp, x11\n\t"
	"cbnz x14, 9f\n\t"
	"8:\n\t"
	"str x9, [x11], #8\n\t"
	"cmp x11, x19\n\t"
	"b.lo 8b\n\t"
	"b 10f\n\t"
	"9:\n\t"
	"sub x10, x19, x14\n\t"
	"stp x29, x9, [x10]\n\t"
	"10:\n\t"
	/* The call from the made-up frame, as what is called saves it. */
	"stp x10, x12, [sp, #-16]!\n\t"
	"mov x29, sp\n\t"
	".cfi_remember_state\n\t"
	".cfi_def_cfa sp, 16\n\t"
	".cfi_offset x29, -16\n\t"
	".cfi_offset x30, -8\n\t"
	".cfi_undefined x19\n\t"
	"blr x2\n\t"
	".cfi_restore_state\n\t"
	"mov sp, x19\n\t"
	".cfi_def_cfa sp, 32\n\t"
	"ldr x19, [sp, #16]\n\t"
	".cfi_restore x19\n\t"
	"ldp x29, x30, [sp], #32\n\t"
	".cfi_def_cfa_offset 0\n\t"
	".cfi_restore x29\n\t"
	".cfi_restore x30\n\t"
	"ret\n\t"
	TDT__CO_END("tdt__co_poll_from")

	TDT__CO_BEGIN("tdt__co_resume_at")
	"mov x9, sp\n\t"
	"str x9, [x1]\n\t"
	"ldr x16, [x0]\n\t"
	"br x16\n\t"
	TDT__CO_END("tdt__co_resume_at")

	/*
	 * awaiter::await_suspend().  The frame of the coroutine is [sp, `self->place.cfa`), and has
	 * a frame record if x29 points into it.
	 */
	TDT__CO_BEGIN("tdt__co_suspend")
	"ldr x9, [x0]\n\t"
	"ldr x10, [x9, #16]\n\t"
	"mov x11, sp\n\t"
	"sub x11, x10, x11\n\t"
	"stp x30, x11, [x9]\n\t"
	"sub x10, x10, x29\n\t"
	"cmp x10, #16\n\t"
	"ccmp x10, x11, #2, hs\n\t"
	"csel x10, x10, xzr, ls\n\t"
	"str x10, [x9, #24]\n\t"
	"mov w0, #1\n\t"
	"ret\n\t"
	TDT__CO_END("tdt__co_suspend")
	".popsection\n\t"
	".endif");
#endif
#undef TDT__CO_ENTRY
#undef TDT__CO_BEGIN
#undef TDT__CO_END
#else
TDT__CO_LOCAL tdt_poll_t tdt__co_poll_from(const tdt::detail::coroutine *self, tdt_context *cx,
					   tdt__co_poll_fn *poll)
{
	return poll(self, cx);
}

TDT__CO_LOCAL void tdt__co_resume_at(void *frame, const char **)
{
	std::coroutine_handle<>::from_address(frame).resume();
}
#endif

/* Tell the library that an await is ready that has waited, as tdt_async_await() does. */
TDT__CO_LOCAL void tdt__co_went_on() noexcept
{
	static constexpr tdt_async waited = { TDT_FUTURE_NONE, nullptr, 1, 0 };

	if (&tdt__await_ready != nullptr && tdt__await_ready != nullptr)
		tdt__await_ready(&waited);
}

/* Run the coroutine on, whose await has ended as `end`.  False: the coroutine has ended. */
TDT__CO_LOCAL bool tdt__co_go_on(tdt::detail::coroutine *self, tdt_poll_t end) noexcept
{
	self->awaited_end = end;
#ifndef __cpp_exceptions
	if (end != TDT_READY) {
		self->failed = true;
		return false;
	}
#endif
	tdt__co_resume_at(self->frame, &self->place.cfa);
	return !std::coroutine_handle<>::from_address(self->frame).done();
}

/* The functions `poll` and `drop` of a coroutine, with the ABI of futures. */
TDT__CO_LOCAL tdt_poll_t tdt__co_poll(void *state, tdt_context *cx) noexcept
{
	auto *self = static_cast<tdt::detail::coroutine *>(state);
	tdt_poll_t end = TDT_READY;

	if (self->ended)
		return TDT_PANICKED;
	if (self->awaited != nullptr) {
		end = tdt__co_poll_from(self, cx, tdt__co_poll_awaited);
		if (end == TDT_PENDING)
			return TDT_PENDING;
		tdt__co_went_on();
	}
	while (tdt__co_go_on(self, end)) {
		end = tdt__co_poll_from(self, cx, tdt__co_poll_awaited);
		if (end == TDT_PENDING)
			return TDT_PENDING;
	}
	self->ended = true;
	return self->failed ? TDT_PANICKED : TDT_READY;
}

TDT__CO_LOCAL void tdt__co_drop(void *state)
{
	std::coroutine_handle<>::from_address(static_cast<tdt::detail::coroutine *>(state)->frame)
	    .destroy();
}

namespace tdt
{
namespace detail
{

struct future_awaiter : awaiter {
	future awaited;

	future_awaiter(coroutine *awaiting, future &&taken) noexcept
	    : awaiter{ awaiting }, awaited(std::move(taken))
	{
	}
	bool await_ready() const noexcept
	{
		self->awaited = &awaited.get();
		return false;
	}
	void await_resume() const
	{
#ifdef __cpp_exceptions
		if (self->awaited_end != TDT_READY)
			throw panicked();
#endif
	}
};

template <typename T> struct task_awaiter : awaiter {
	task<T> awaited;
	tdt_future borrowed;

	task_awaiter(coroutine *awaiting, task<T> &&taken) noexcept
		: awaiter{ awaiting }, awaited(std::move(taken)), borrowed(awaited.borrow())
	{
	}
	bool await_ready() const noexcept
	{
		self->awaited = &borrowed;
		return false;
	}
	T await_resume() { return awaited.take(); }
};

struct promise_base : coroutine {
	std::suspend_always initial_suspend() const noexcept { return {}; }
	std::suspend_always final_suspend() const noexcept { return {}; }
	void unhandled_exception() noexcept
	{
		failed = true;
		*error = std::current_exception();
	}

	/* Only futures and tasks can be awaited, because nothing else can be polled. */
	future_awaiter await_transform(tdt_future taken) noexcept
	{
		return { this, future(taken) };
	}
	future_awaiter await_transform(future &&taken) noexcept
	{
		return { this, std::move(taken) };
	}
	template <typename T> task_awaiter<T> await_transform(task<T> &&taken) noexcept
	{
		return { this, std::move(taken) };
	}
};

template <typename T> struct promise;

template <typename T> struct promise_of : promise_base {
	task<T> get_return_object() noexcept
	{
		auto *own = static_cast<promise<T> *>(this);

		frame = std::coroutine_handle<promise<T>>::from_promise(*own).address();
		return task<T>(own);
	}
	static task<T> get_return_object_on_allocation_failure() noexcept { return task<T>(); }
};

template <typename T> struct promise : promise_of<T> {
	std::optional<T> own_value;
	std::optional<T> *value = &own_value; /* stores the value */

	template <typename U = T> void return_value(U &&returned)
	{
		value->emplace(std::forward<U>(returned));
	}
	T take() { return std::move(*own_value); }
};

template <> struct promise<void> : promise_of<void> {
	void return_void() const noexcept {}
	void take() const noexcept {}
};

} // namespace detail

/*
 * The return type of a coroutine.  The coroutine has not begun yet.  Await it (`co_await
 * read_line(peer)`, or `co_await std::move(task)`), or release() it as a future.  Otherwise it is
 * destroyed with its owner.  Owner thread only.
 */
template <typename T> class [[nodiscard]] task {
	static_assert(!std::is_reference_v<T>, "a task's value is an object: return a pointer");

      public:
	using promise_type = detail::promise<T>;

	task() noexcept = default;
	task(task &&other) noexcept : promise_(std::exchange(other.promise_, nullptr)) {}
	task &operator=(task &&other) noexcept
	{
		task old(std::exchange(promise_, std::exchange(other.promise_, nullptr)));

		return *this;
	}
	~task()
	{
		if (promise_ != nullptr)
			tdt__co_drop(base());
	}

	/* Whether there is a coroutine: false after a move, or if there was no memory for it. */
	explicit operator bool() const noexcept { return promise_ != nullptr; }

	/*
	 * Turn the coroutine into a future, which the caller owns.  The task is empty then.  When
	 * the future is ready, the value is in `*value` (if the task has a value).  When it has
	 * panicked, the exception is in `*error`.  Either may be nullptr: then the value or the
	 * exception is discarded.  Otherwise they must outlive the future; its polls write to them.
	 *
	 * Returns TDT_FUTURE_NONE and sets errno to ENOMEM if the task is empty.
	 */
	tdt_future release(std::exception_ptr *error = nullptr) &&noexcept
		requires std::is_void_v<T>
	{
		return give_out(error);
	}
	template <typename U>
	tdt_future release(std::optional<U> *value, std::exception_ptr *error = nullptr) &&noexcept
		requires std::is_same_v<T, U>
	{
		if (promise_ != nullptr && value != nullptr)
			promise_->value = value;
		return give_out(error);
	}
	tdt_future release(std::nullptr_t, std::exception_ptr *error = nullptr) &&noexcept
		requires(!std::is_void_v<T>)
	{
		return give_out(error);
	}

      private:
	friend detail::promise_of<T>;
	friend detail::task_awaiter<T>;

	promise_type *promise_ = nullptr;

	explicit task(promise_type *promise) noexcept : promise_(promise) {}

	detail::coroutine *base() const noexcept { return promise_; }

	tdt_future borrow() const noexcept
	{
		return promise_ != nullptr ? tdt_future{ base(), tdt__co_poll, nullptr }
					   : TDT_FUTURE_NONE;
	}

	tdt_future give_out(std::exception_ptr *error) noexcept
	{
		if (promise_ == nullptr) {
			errno = ENOMEM;
			return TDT_FUTURE_NONE;
		}
		if (error != nullptr)
			promise_->error = error;
		tdt_future given = { base(), tdt__co_poll, tdt__co_drop };

		promise_ = nullptr;
		return given;
	}

	/* Return the value of the coroutine, which has ended. */
	T take()
	{
#ifdef __cpp_exceptions
		if (promise_ == nullptr)
			throw std::bad_alloc();
		if (promise_->failed)
			std::rethrow_exception(std::move(promise_->own_error));
#endif
		return promise_->take();
	}
};

} // namespace tdt

#undef TDT__CO_LOCAL

#endif
