/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_FUTURE_H
#define TDT_FUTURE_H /* stable from 1.0: docs/compatibility.md */

/*
 * The ABI of futures: the structs of a future, a context and a waker, and a few inline helpers that
 * use them.  This header needs no library: a program may include it alone.
 *
 * A *future* is a value that is polled until it completes.  A *poll* is one call of its `poll`.  A
 * future that cannot complete yet first clones the *waker* that it was polled with, and then
 * returns TDT_PENDING.  Later, the code that makes the future able to go on wakes that clone, and
 * the runtime polls the future again.
 *
 * The layout is binary compatible with the C ABI that the Rust ecosystem uses for futures (crate
 * async-ffi: FfiFuture<()>, FfiContext, FfiWakerVTable).  Therefore C can await a Rust future, and
 * Rust can await a C future, with no glue.
 *
 * Rules of the ABI
 *
 * poll
 *   - returns TDT_READY, TDT_PENDING or TDT_PANICKED, and nothing else.
 *   - tolerates spurious polls: polls that no wake-up led to.
 *   - may be called from any thread, but only by one thread at a time.  The caller orders each
 *     poll before the next one.
 *   - returns on the thread and on the stack that it was called on (see tdt/coroutine.h).
 *   - does not unwind (no C++ exception, Rust panic or longjmp leaves it), and does not free
 *     `state`.
 *   - is not called again after TDT_READY or TDT_PANICKED.  The futures of this library return
 *     TDT_PANICKED to such a poll, and call no child.
 * drop
 *   - is never NULL.
 *   - is called exactly once: after the future has ended (with TDT_READY or TDT_PANICKED), or
 *     before that to cancel the future.  It is never called during a poll of the future.
 * TDT_PANICKED
 *   - ends a future as TDT_READY does.  A future whose child panics returns TDT_PANICKED at
 *     once, and drops its other children.
 * A borrowed waker: the waker in a context is borrowed for the poll.
 *   - The poll may clone it, and may wake it with `wake_by_ref`.
 *   - The poll neither calls its `wake` or `drop`, nor keeps the pointer.
 * An owned waker: the caller of `clone` owns the clone.
 *   - Exactly one `wake` (which consumes it) or one `drop` ends it.
 *   - It may have another address and another vtable than the original.  In a traced task it may
 *     be a waker of libtdt (see tdt_leaf_wakers()).
 *   - Any thread may use and drop it, also after the task has ended.
 *   - `clone` returns NULL if it fails.
 * Where a runtime keeps its waker: a waker is not the first member of a runtime's task.
 *   - Lists of the runtime's own contain the addresses of tasks.  A waker at another address than
 *     its task makes the addresses of wakers occur only where a waker is held.  A search of memory
 *     then finds out that nobody holds the waker of a task, so that the task can never wake.
 * The functions of a waker do not unwind.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/decls.h>

TDT_DECLS_BEGIN

/*
 * TDT_MUST_USE stands before the functions that return something which the caller has to await, to
 * drop, to unref or to free.  A call that ignores the result gives a warning (-Wunused-result,
 * which is on by default).  Use it for your own functions that make futures, too.
 *
 * TDT_MUST_USE_TYPE does the same for all functions that return a type, if the compiler can: in C++
 * (from C++17 on with g++), with Clang, and in C23.
 */
#define TDT_MUST_USE __attribute__((warn_unused_result))

#if defined(__clang__)
#define TDT_MUST_USE_TYPE __attribute__((warn_unused_result))
#elif (defined(__cplusplus) && __cplusplus >= 201703L) || \
	(defined(__STDC_VERSION__) && __STDC_VERSION__ > 201710L)
#define TDT_MUST_USE_TYPE [[nodiscard]]
#else
#define TDT_MUST_USE_TYPE
#endif

/* The result of a poll. */
typedef uint8_t tdt_poll_t;
enum {
	TDT_READY = 0,    /* the future has ended; its result is where its maker said */
	TDT_PENDING = 1,  /* not yet: a clone of the waker is kept by code that will wake it */
	TDT_PANICKED = 2  /* the future has ended, and has no result */
};

/*
 * A waker.  The data of its owner (for example the header of a task) follows the pointer to the
 * vtable.
 */
struct tdt_waker {
	const struct tdt_waker_vtable *vtable;
};

struct tdt_waker_vtable {
	const struct tdt_waker *(*clone)(const struct tdt_waker *waker);
	void (*wake)(const struct tdt_waker *waker); /* consumes the waker */
	void (*wake_by_ref)(const struct tdt_waker *waker);
	void (*drop)(const struct tdt_waker *waker);
};

/* The argument of a poll.  It is borrowed: it is valid during that poll only. */
struct tdt_context {
	const struct tdt_waker *waker;
};

/* A future.  To move a future, copy the struct; after that, use only the copy. */
struct TDT_MUST_USE_TYPE tdt_future {
	void *state;
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	void (*drop)(void *state);
};

/*
 * The future that is none: all zero.  A call that makes a future returns TDT_FUTURE_NONE if it
 * fails.  Then `errno` says why, and the arguments of the call still belong to the caller.  Polling
 * TDT_FUTURE_NONE returns TDT_PANICKED; dropping it does nothing.
 */
#ifdef __cplusplus
#define TDT_FUTURE_NONE (tdt_future())
#else
#define TDT_FUTURE_NONE ((struct tdt_future){ NULL, NULL, NULL })
#endif

/* Return whether `future` is none, that is, cannot be polled. */
static inline int tdt_future_is_none(const struct tdt_future *future)
{
	return future->poll == NULL;
}

/*
 * TDT_KEEP_FRAME() is an empty statement that the compiler cannot see through.  It costs no
 * instruction.
 *
 * A function that polls or clones puts this statement behind the call.  Without it, the compiler
 * may turn the call into a jump (a *sibling call*).  A jump removes the caller's frame from the
 * stack, and so from every backtrace.  Use the statement in your own combinators that end in
 * `return child->poll(...)`, or call tdt_future_poll(), which contains it.
 *
 * Each use of the macro holds its line number, so no two uses are the same.  This keeps two polls
 * apart that stand in one function and are followed by the same code, for example in the two
 * branches of an `if`.  Without the macro, the compiler may merge them into one call, which then
 * has the line of only one of them.  To prevent that, put the macro before and behind each of the
 * two polls.
 *
 * (The macro does not keep whole functions apart.  Compilers and linkers may fold functions with
 * the same code into one, as gcc does at -Os.  The name of one of them then stands for all.)
 *
 * A helper that contains the macro is always inlined.  If it were compiled as a function of its own
 * (for example at -Os), it would keep only its own frame, and `return tdt_future_poll(...)` in its
 * caller could still become a sibling call.
 */
#define TDT_KEEP_FRAME() __asm__ volatile("" : : "i"(__LINE__))

/*
 * Poll `future` once.  Returns the result of its poll, or TDT_PANICKED for TDT_FUTURE_NONE.  Poll
 * the children of a combinator with this function: the combinator's frame then stays on the stack,
 * however the compiler optimizes it.
 */
static inline __attribute__((always_inline)) tdt_poll_t
tdt_future_poll(const struct tdt_future *future, struct tdt_context *cx)
{
	tdt_poll_t result;

	if (future->poll == NULL)
		return TDT_PANICKED;
	result = future->poll(future->state, cx);
	TDT_KEEP_FRAME();
	return result;
}

/* Drop `future`.  The variable becomes TDT_FUTURE_NONE, so dropping it twice is harmless. */
static inline void tdt_future_drop(struct tdt_future *future)
{
	struct tdt_future dropped = *future;

	*future = TDT_FUTURE_NONE;
	if (dropped.drop != NULL)
		dropped.drop(dropped.state);
}

/*
 * Clone `waker`.  The caller owns the clone, and ends it with tdt_waker_wake() or tdt_waker_drop(),
 * from any thread.
 *
 * Returns NULL if the owner of the waker cannot make a clone.  Then nothing can wake the task for
 * this leaf: return TDT_PANICKED, unless something else is sure to wake the task.
 */
static inline __attribute__((always_inline)) TDT_MUST_USE const struct tdt_waker *
tdt_waker_clone(const struct tdt_waker *waker)
{
	const struct tdt_waker *clone = waker->vtable->clone(waker);

	TDT_KEEP_FRAME();
	return clone;
}

/*
 * Wake the task of `waker`, which the caller owns, and end the waker.  Any thread.  NULL does
 * nothing.
 */
static inline void tdt_waker_wake(const struct tdt_waker *waker)
{
	if (waker != NULL)
		waker->vtable->wake(waker);
}

/* Wake the task of `waker`, which may be owned or borrowed, and stays valid.  Any thread. */
static inline __attribute__((always_inline)) void
tdt_waker_wake_by_ref(const struct tdt_waker *waker)
{
	waker->vtable->wake_by_ref(waker);
	TDT_KEEP_FRAME();
}

/* End `waker`, which the caller owns, without waking the task.  Any thread.  NULL does nothing. */
static inline void tdt_waker_drop(const struct tdt_waker *waker)
{
	if (waker != NULL)
		waker->vtable->drop(waker);
}

/*
 * Return whether the waker `kept` is sure to wake the task that `waker` wakes: whether both are the
 * same object.
 *
 * The answer *no* does not prove that they wake different tasks; clone `waker` again in that case.
 * The answer *yes* proves something only if `kept` is a clone that is still held.  If `kept` was
 * only borrowed, another waker may have the same address by now.
 */
static inline int tdt_waker_will_wake(const struct tdt_waker *kept, const struct tdt_waker *waker)
{
	return kept == waker;
}

TDT_DECLS_END

#endif
