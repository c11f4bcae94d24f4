/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_ASYNC_H
#define TDT_ASYNC_H

/*
 * Async functions in plain C: a poll function that reads top to bottom, waits in the middle, and goes on there.  It
 * needs no library: a program may include this header alone.
 *
 *	struct fetch {
 *		struct tdt_async async;         // first, and of this name
 *		const char *host;               // what it is given,
 *		struct reply *reply;            // where its results go,
 *		int *error;
 *		int fd;                         // and its variables
 *	};
 *
 *	static tdt_poll_t fetch_poll(void *state, struct tdt_context *cx)
 *	{
 *		struct fetch *fetch = state;
 *
 *		TDT_BEGIN(&fetch->async, cx);
 *		TDT_AWAIT(dial(fetch->host, &fetch->fd, fetch->error));
 *		if (*fetch->error != 0)
 *			return TDT_READY;               // an early return
 *		while (!reply_complete(fetch->reply))
 *			TDT_AWAIT(read_some(fetch->fd, fetch->reply));
 *		TDT_END();
 *	}
 *
 *	static void fetch_fini(void *state)     // ended or cancelled, here all comes by
 *	{
 *		struct fetch *fetch = state;
 *
 *		if (fetch->fd >= 0)
 *			close(fetch->fd);
 *	}
 *
 *	struct tdt_future fetch(const char *host, struct reply *reply, int *error)
 *	{
 *		return TDT_ASYNC_NEW(fetch_poll, (struct fetch){ .async.fini = fetch_fini, .fd = -1, .host = host,
 *								 .reply = reply, .error = error });
 *	}
 *
 * A future has no result but that it has ended.  Results and errors travel through pointers that it was given, to
 * memory that outlives it: the state of who awaits it, mostly, as `&fetch->fd` above.
 *
 * How it works: TDT_BEGIN opens a switch over the line where the function waited, TDT_AWAIT sets a case label in it.
 * Hence the rules:
 *
 *   - Variables of the C function are lost at an await; what must survive it lives in the state.  Variables between two
 *     awaits are fine.  In C++ they want a block of their own, since a case label must not jump over an initializer.
 *   - One TDT_AWAIT on a source line: two don't compile.  None inside a switch of your own: the next poll would not
 *     find it, and panic.  Loops and ifs are fine.
 *   - What the function sets up before TDT_BEGIN, it sets up at every poll.
 *   - TDT_PENDING is returned by TDT_AWAIT alone.  What waits for something else than a future is a future of its own:
 *     a leaf, a poll function written by hand.
 */

#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The first member of an async function's state.  All zero but `fini` to begin with. */
struct tdt_async {
	struct tdt_future child;   /* what it awaits, polled in place; or none */
	void (*fini)(void *state); /* releases what the state holds, when the future is dropped; NULL: nothing to do */
	uint32_t line;		   /* where it waits, for reading in a debugger; 0 before the first poll */
};

#define TDT_ASYNC_ENDED UINT32_MAX

/*
 * Open the body of the async function.  `async`: a pointer to the struct tdt_async of its state.  `cx`: the context of
 * the poll.
 *
 * A function counts as ended until an await says otherwise: so every return is an end, and a poll after the end gives
 * TDT_PANICKED and runs nothing.
 */
#define TDT_BEGIN(async, cx)                                                                                           \
	struct tdt_async *const tdt_async_self = (async);                                                              \
	struct tdt_context *const tdt_async_cx = (cx);                                                                 \
	const uint32_t tdt_async_line = tdt_async_self->line;                                                          \
                                                                                                                       \
	(void)tdt_async_cx;                                                                                            \
	tdt_async_self->line = TDT_ASYNC_ENDED;                                                                        \
	switch (tdt_async_line) {                                                                                      \
	default:                                                                                                       \
		return TDT_PANICKED;                                                                                   \
	case 0:

/*
 * Await `future`: an expression that is evaluated once and gives a struct tdt_future, which the await takes over.  It
 * is polled until it has ended, and dropped then, or with the state if the function is cancelled meanwhile.
 *
 * If it panics, so does the function, at once.  TDT_FUTURE_NONE counts as panicked; where a failed call is no panic,
 * test it first:
 *
 *	struct tdt_future reading = read_some(fetch->fd, fetch->reply);
 *
 *	if (tdt_future_is_none(&reading)) {
 *		*fetch->error = errno;
 *		return TDT_READY;
 *	}
 *	TDT_AWAIT(reading);
 */
#define TDT_AWAIT(future)                                                                                              \
	do {                                                                                                           \
		tdt_poll_t tdt_async_polled;                                                                           \
                                                                                                                       \
		tdt_async_self->child = (future);                                                                      \
		__attribute__((fallthrough));                                                                          \
	case __LINE__:                                                                                                 \
		TDT_KEEP_FRAME();                                                                                      \
		tdt_async_polled = tdt_async_await(tdt_async_self, tdt_async_cx, __LINE__);                            \
		TDT_KEEP_FRAME();                                                                                      \
		if (tdt_async_polled != TDT_READY)                                                                     \
			return tdt_async_polled;                                                                       \
	} while (0)

/* Close the body.  Reaching it ends the function, as `return TDT_READY` does. */
#define TDT_END()                                                                                                      \
	}                                                                                                              \
	return TDT_READY

/*
 * Make the future of an async function: TDT_ASYNC_NEW(poll, state).  `poll` is the function.  `state` is its state to
 * begin with, whose first member is `async`: a compound literal ({ 0 } where there is nothing to give) or a variable,
 * which is copied; in C++ any expression of a trivially copyable type.
 *
 * `state.async.fini` is called with the copy when the future is dropped, ended or not, after the child it awaits (which
 * may use the state) and before the copy is freed.
 *
 * Returns TDT_FUTURE_NONE and errno ENOMEM if there is no memory: what `state` refers to stays the caller's then, and
 * `fini` is not called.
 */
#ifdef __cplusplus
#define TDT_ASYNC_NEW(poll, ...) tdt_async_copy((poll), __VA_ARGS__)
#else
#define TDT_ASYNC_NEW(poll, ...)                                                                                       \
	((void)sizeof(char[offsetof(__typeof__(__VA_ARGS__), async) == 0 ? 1 : -1]),                                   \
	 tdt_async_new((poll), &__VA_ARGS__, sizeof(__VA_ARGS__)))
#endif

/* Drop the future of an async function: for tdt_async_new(). */
static inline void tdt_async_drop(void *state)
{
	struct tdt_async *async = (struct tdt_async *)state;

	tdt_future_drop(&async->child);
	if (async->fini != NULL)
		async->fini(state);
	free(state);
}

/* What TDT_ASYNC_NEW does, with a pointer to the state to copy, which begins with a struct tdt_async, and its size. */
static inline struct tdt_future tdt_async_new(tdt_poll_t (*poll)(void *state, struct tdt_context *cx),
					      const void *state, size_t size)
{
	struct tdt_future future = TDT_FUTURE_NONE;
	void *copy = malloc(size);

	if (copy == NULL)
		return future;
	memcpy(copy, state, size);
	future.state = copy;
	future.poll = poll;
	future.drop = tdt_async_drop;
	return future;
}

/* For TDT_AWAIT: poll the child that is awaited on `line`. */
static inline tdt_poll_t tdt_async_await(struct tdt_async *async, struct tdt_context *cx, uint32_t line)
{
	tdt_poll_t result = tdt_future_poll(&async->child, cx);

	if (result == TDT_PENDING)
		async->line = line;
	else
		tdt_future_drop(&async->child);
	return result;
}

#ifdef __cplusplus
}

template <typename State>
inline tdt_future tdt_async_copy(tdt_poll_t (*poll)(void *state, tdt_context *cx), const State &state)
{
	static_assert(__is_trivially_copyable(State), "the state of an async function is copied as bytes");
	static_assert(__is_standard_layout(State) && offsetof(State, async) == 0, "`async` is the first member");
	return tdt_async_new(poll, &state, sizeof(state));
}
#endif

#endif
