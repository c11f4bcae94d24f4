/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_FUTURE_H
#define TDT_FUTURE_H

/*
 * The ABI of futures: what a future, a context and a waker are, and the few inline helpers that use them.  It needs no
 * library: a program may include this header alone.
 *
 * A *future* is something polled to completion.  A *poll* is one call of `poll`.  A future that can't go on returns
 * TDT_PENDING after it has cloned the *waker* it was polled with; whoever makes it able to go on wakes that clone, and
 * the runtime polls again.
 *
 * The layout is binary compatible with the C ABI the Rust ecosystem uses for futures (crate async-ffi: FfiFuture<()>,
 * FfiContext, FfiWakerVTable), so a Rust future can be awaited from C, and a C future from Rust, with no glue.
 *
 * Rules of the ABI
 *
 *   poll   - returns TDT_READY, TDT_PENDING or TDT_PANICKED, and nothing else.
 *          - must tolerate spurious polls: being polled though nothing woke it.
 *          - may be called from any thread, but by one at a time; the caller orders one poll before the next.
 *          - returns on the thread, and on the stack, that it was called on: see tdt/coroutine.h.
 *          - does not unwind (no C++ exception, Rust panic or longjmp leaves it) and does not free `state`.
 *          - is not called again after TDT_READY or TDT_PANICKED.  tdt's own futures answer such a poll with
 *            TDT_PANICKED and call no child.
 *   drop   - is never NULL, and is called exactly once: when the future has ended (after TDT_READY and TDT_PANICKED
 *            too) or to cancel it; never during its poll.
 *   TDT_PANICKED ends a future as TDT_READY does.  Who awaits it passes it on at once and drops the rest.
 *
 *   A waker that comes in a context is *borrowed* for the poll: it may be cloned, and woken with `wake_by_ref`; it is
 *   neither woken with `wake` nor dropped, and the pointer is not kept.  A clone is *owned*: it is ended by exactly one
 *   `wake` (which consumes it) or `drop`.  A clone may be another pointer with another vtable than
 *   its original (in a traced task it may be a waker of libtdt's: tdt_leaf_wakers()); it may be used
 *   and dropped from any thread, also after the task has ended.  `clone` gives NULL when it fails.
 *   A waker's functions do not unwind.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a poll says. */
typedef uint8_t tdt_poll_t;
enum {
	TDT_READY = 0,    /* the future has ended; its result is where its maker said it would be */
	TDT_PENDING = 1,  /* not yet: a clone of the waker is kept by somebody who will wake it */
	TDT_PANICKED = 2  /* the future has ended, and has no result */
};

/* A waker: the data of its owner (a task's header, say) follows the pointer to the vtable. */
struct tdt_waker {
	const struct tdt_waker_vtable *vtable;
};

struct tdt_waker_vtable {
	const struct tdt_waker *(*clone)(const struct tdt_waker *waker);
	void (*wake)(const struct tdt_waker *waker); /* consumes */
	void (*wake_by_ref)(const struct tdt_waker *waker);
	void (*drop)(const struct tdt_waker *waker);
};

/* What a poll is given.  Borrowed for that poll. */
struct tdt_context {
	const struct tdt_waker *waker;
};

/* A future.  It is moved by copying the struct; the copy that is moved from is not used again. */
struct tdt_future {
	void *state;
	tdt_poll_t (*poll)(void *state, struct tdt_context *cx);
	void (*drop)(void *state);
};

/*
 * The future that is none: all zero.  Calls that make a future return it when they fail (errno says why; what was
 * passed in stays the caller's).  Polling it gives TDT_PANICKED, dropping it does nothing.
 */
#ifdef __cplusplus
#define TDT_FUTURE_NONE (tdt_future())
#else
#define TDT_FUTURE_NONE ((struct tdt_future){ NULL, NULL, NULL })
#endif

/* Whether `future` is none, that is, can't be polled. */
static inline int tdt_future_is_none(const struct tdt_future *future)
{
	return future->poll == NULL;
}

/*
 * An empty statement the compiler can't see through; it costs no instruction.  A helper that polls or clones puts it
 * behind the call, lest the call become a jump (a *sibling call*): the caller's frame would be gone from the stack, and
 * so from every backtrace.  Use it in combinators of your own that end in `return child->poll(...)`; or call
 * tdt_future_poll(), which has it.
 *
 * No two of them are the same, since each holds its line.  So it also keeps two polls in one function that go on alike
 * (in the branches of an if, say) from becoming one, with the line of either: put it before and behind them.
 *
 * (Compilers and linkers may fold functions whose code is all the same into one, gcc at -Os does: that one's name then
 * stands for all.)
 *
 * A helper that has it is always inlined.  As a function of its own (at -Os, say) it would keep only its own frame, and
 * `return tdt_future_poll(...)` be a sibling call.
 */
#define TDT_KEEP_FRAME() __asm__ volatile("" : : "i"(__LINE__))

/*
 * Poll `future` once.  Returns what its poll returned; TDT_PANICKED for TDT_FUTURE_NONE.  A combinator polls its
 * children with this: its own frame then stays on the stack whatever the compiler makes of it.
 */
static inline __attribute__((always_inline)) tdt_poll_t tdt_future_poll(const struct tdt_future *future,
									struct tdt_context *cx)
{
	tdt_poll_t result;

	if (future->poll == NULL)
		return TDT_PANICKED;
	result = future->poll(future->state, cx);
	TDT_KEEP_FRAME();
	return result;
}

/* Drop `future`, which becomes none, so that dropping it twice is harmless. */
static inline void tdt_future_drop(struct tdt_future *future)
{
	struct tdt_future dropped = *future;

	*future = TDT_FUTURE_NONE;
	if (dropped.drop != NULL)
		dropped.drop(dropped.state);
}

/*
 * A clone of `waker`, owned by the caller, who ends it with tdt_waker_wake() or tdt_waker_drop(), from any thread.
 * NULL if the waker's owner could not make one: then nobody could wake the task.  Return TDT_PANICKED, unless something
 * else is sure to.
 */
static inline __attribute__((always_inline)) const struct tdt_waker *tdt_waker_clone(const struct tdt_waker *waker)
{
	const struct tdt_waker *clone = waker->vtable->clone(waker);

	TDT_KEEP_FRAME();
	return clone;
}

/* Wake the task of an owned `waker`, and end the waker.  Any thread.  NULL does nothing. */
static inline void tdt_waker_wake(const struct tdt_waker *waker)
{
	if (waker != NULL)
		waker->vtable->wake(waker);
}

/* Wake the task of `waker`, owned or borrowed, which stays as it is.  Any thread. */
static inline __attribute__((always_inline)) void tdt_waker_wake_by_ref(const struct tdt_waker *waker)
{
	waker->vtable->wake_by_ref(waker);
	TDT_KEEP_FRAME();
}

/* End an owned `waker` without waking.  Any thread.  NULL does nothing. */
static inline void tdt_waker_drop(const struct tdt_waker *waker)
{
	if (waker != NULL)
		waker->vtable->drop(waker);
}

/*
 * Whether the waker `kept` surely wakes the task that `waker` wakes: they are the same object.  A *no* is no proof of
 * the contrary: then clone anew.  A *yes* is proof only if `kept` is a clone that is still held: of a waker that was
 * only borrowed another may have the address by now.
 */
static inline int tdt_waker_will_wake(const struct tdt_waker *kept, const struct tdt_waker *waker)
{
	return kept == waker;
}

#ifdef __cplusplus
}
#endif

#endif
