/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_ASYNC_H
#define TDT_ASYNC_H /* stable from 1.0: docs/compatibility.md */

/*
 * Async functions in plain C: a poll function that reads from top to bottom, waits in the middle,
 * and continues there.  This header needs no library: a program may include it alone.
 *
 * A local variable loses its value at every TDT_AWAIT that waits, because the function returns
 * there and is called again.  Keep each value that is needed after an await in the state:
 *
 *	TDT_BEGIN(&greet->async, cx);                   // WRONG
 *	char *name = look_up(greet->user);
 *	TDT_AWAIT(say("Hello", name));
 *	free(name);                                     // `name` has no value here
 *	TDT_END();
 *
 *	TDT_BEGIN(&greet->async, cx);                   // right
 *	greet->name = look_up(greet->user);
 *	TDT_AWAIT(say("Hello", greet->name));
 *	free(greet->name);
 *	TDT_END();
 *
 * C++ compilers refuse the wrong program, since a case label must not jump over an initializer.
 * C compilers find it if they are told to, so compile with these options:
 *
 *	gcc -Wall -O1 -Wjump-misses-init        "switch jumps over variable initialization", "may be
 *						used uninitialized"
 *	clang -Wconditional-uninitialized       "may be uninitialized when used here"
 *
 * (-Wjump-misses-init finds every variable with an initializer, whether or not it is used after the
 * await.  If gcc finds tdt's headers in a directory of the system, it prints only the notes of this
 * warning, which name the variable.)
 *
 * This is a whole async function:
 *
 *	struct fetch {
 *		struct tdt_async async;         // the first member, with this name
 *		const char *host;               // arguments,
 *		struct reply *reply;            // places for results,
 *		int *error;
 *		int fd;                         // and variables
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
 *	static void fetch_fini(void *state)     // called after the end, and after a cancellation
 *	{
 *		struct fetch *fetch = state;
 *
 *		if (fetch->fd >= 0)
 *			close(fetch->fd);
 *	}
 *
 *	struct tdt_future fetch(const char *host, struct reply *reply, int *error)
 *	{
 *		return TDT_ASYNC_NEW(fetch_poll, (struct fetch){ .async.fini = fetch_fini,
 *								 .fd = -1, .host = host,
 *								 .reply = reply, .error = error });
 *	}
 *
 * The only result of a future is that it has ended.  Other results, and errors, travel through
 * pointers that the future was given, to memory that outlives the future.  Mostly this memory is
 * the state of the function that awaits the future, as with `&fetch->fd` above.
 *
 * How it works: TDT_BEGIN opens a `switch` over the point where the function waited, and TDT_AWAIT
 * places a case label in that switch.  This leads to the following rules:
 *
 *   - A variable that is used only between two awaits may be a variable of the C function.  Declare
 *     it before TDT_BEGIN, without an initializer, or in a block that contains no await.
 *   - Do not write TDT_AWAIT inside a `switch` of your own: the case label would belong to that
 *     switch.  It does not compile ("duplicate case value", "narrowing conversion").  Loops and ifs
 *     are fine.
 *   - What stands before TDT_BEGIN runs at every poll: a field that is set there loses its value.
 *     So GCC refuses a statement there (in C; Clang with -Wdeclaration-after-statement).  Set the
 *     field behind TDT_BEGIN, or in the state that TDT_ASYNC_NEW copies.  What is to happen at every
 *     poll may initialize a variable: `const bool stops = atomic_load(&server->stops);`.
 *   - Only TDT_AWAIT returns TDT_PENDING.  To wait for something that is not a future, write a
 *     future for it: a leaf, whose poll function is written by hand.
 */

#include <stdlib.h>
#include <string.h>

#include <tdt/future.h>

TDT_DECLS_BEGIN

/* The first member of an async function's state.  Initially all fields but `fini` are zero. */
struct tdt_async {
	struct tdt_future child;   /* the future that is awaited, polled in place; or none */
	void (*fini)(void *state); /* called when the future is dropped; releases what the state
				      holds.  NULL: there is nothing to release */
	uint32_t line;		   /* where the function waits, or waited last, for reading in a
				      debugger; 0: it never waited */
	uint32_t point;		   /* the number of the await that waits; 0 before the first poll;
				      TDT_ASYNC_ENDED */
};

#define TDT_ASYNC_ENDED UINT32_MAX

/*
 * TDT__ASYNC_LABEL() is the value of a case label.  Its type is wider than that of any `switch`
 * that a user may write.  TDT_AWAIT has two labels, which differ only in the upper half.  Inside
 * another `switch`, both labels would have the same value, which is an error.
 */
__extension__ typedef unsigned __int128 tdt_await_cannot_be_inside_a_switch_of_your_own;
#define TDT__ASYNC_LABEL(half, point)                                                              \
	((tdt_await_cannot_be_inside_a_switch_of_your_own)(half) << 64 | (uint64_t)(point))
#define TDT__AWAIT_CANNOT_BE_INSIDE_YOUR_SWITCH_NOR_PAST_AN_INITIALIZER(point)                     \
	TDT__ASYNC_LABEL(2, point)

/*
 * GCC then refuses a declaration behind a statement; Clang if it has that option.  GCC's `pop`
 * alone would leave the warning on for the rest of a file that never asked for it.  So the macro
 * turns the warning off there, even if the file asked for it.
 */
#ifdef __cplusplus
#define TDT__NO_STATEMENT_BEFORE
#define TDT__STATEMENTS_AGAIN
#else
#define TDT__NO_STATEMENT_BEFORE                                                                   \
	_Pragma("GCC diagnostic push")                                                             \
	    _Pragma("GCC diagnostic error \"-Wdeclaration-after-statement\"")
#ifdef __clang__
#define TDT__STATEMENTS_AGAIN _Pragma("GCC diagnostic pop")
#else
#define TDT__STATEMENTS_AGAIN                                                                      \
	_Pragma("GCC diagnostic pop")                                                              \
	    _Pragma("GCC diagnostic ignored \"-Wdeclaration-after-statement\"")
#endif
#endif

/*
 * Open the body of the async function.  `async` points to the struct tdt_async of its state.  `cx`
 * is the context of the poll.
 *
 * TDT_BEGIN marks the function as ended, and only an await that waits removes the mark.  Therefore
 * every return ends the function.  A poll after the end returns TDT_PANICKED and runs nothing.
 */
#define TDT_BEGIN(async, cx)                                                                       \
	TDT__NO_STATEMENT_BEFORE                                                                   \
	enum { tdt_async_first = __COUNTER__, what_is_before_TDT_BEGIN_runs_at_every_poll };       \
	TDT__STATEMENTS_AGAIN                                                                      \
	struct tdt_async *const tdt_async_self = (async);                                          \
	struct tdt_context *const tdt_async_cx = (cx);                                             \
	const uint32_t tdt_async_point = tdt_async_self->point;                                    \
                                                                                                   \
	(void)tdt_async_cx;                                                                        \
	tdt_async_self->point = TDT_ASYNC_ENDED;                                                   \
	switch (TDT__ASYNC_LABEL(1, tdt_async_point)) {                                            \
	default:                                                                                   \
		return TDT_PANICKED;                                                               \
	case TDT__ASYNC_LABEL(1, 0):

/*
 * Await a future: TDT_AWAIT(future).  `future` is an expression that gives a struct tdt_future.  It
 * is evaluated once, and the await takes the future over.  The await polls the future until it has
 * ended, and then drops it.  If the function is cancelled before that, the future is dropped
 * together with the state.
 *
 * If the future panics, so does the function, at once.  TDT_FUTURE_NONE counts as panicked.  Where
 * a failed call must not become a panic, test for it first:
 *
 *	struct tdt_future reading;                      // only used between two awaits
 *
 *	TDT_BEGIN(&fetch->async, cx);
 *	...
 *	reading = read_some(fetch->fd, fetch->reply);
 *	if (tdt_future_is_none(&reading)) {
 *		*fetch->error = errno;
 *		return TDT_READY;
 *	}
 *	TDT_AWAIT(reading);
 */
#define TDT_AWAIT(...) TDT__AWAIT(__COUNTER__ - tdt_async_first, __VA_ARGS__)
#define TDT__AWAIT(point_, ...)                                                                    \
	do {                                                                                       \
		tdt_poll_t tdt_async_polled;                                                       \
                                                                                                   \
		tdt_async_self->child = (__VA_ARGS__);                                             \
		__attribute__((fallthrough));                                                      \
	case TDT__ASYNC_LABEL(1, point_):                                                          \
	case TDT__AWAIT_CANNOT_BE_INSIDE_YOUR_SWITCH_NOR_PAST_AN_INITIALIZER(point_):              \
		TDT_KEEP_FRAME();                                                                  \
		tdt_async_polled =                                                                 \
		    tdt_async_await(tdt_async_self, tdt_async_cx, point_, __LINE__);               \
		TDT_KEEP_FRAME();                                                                  \
		if (tdt_async_polled != TDT_READY)                                                 \
			return tdt_async_polled;                                                   \
	} while (0)

/* Close the body.  Reaching TDT_END ends the function, as `return TDT_READY` does. */
#define TDT_END()                                                                                  \
	}                                                                                          \
	return TDT_READY

#define TDT__ASYNC_FIRST                                                                           \
	"the first member of an async function's state must be `struct tdt_async async`"

/*
 * Make the future of an async function: TDT_ASYNC_NEW(poll, state).  `poll` is the function.
 * `state` is its initial state, whose first member is `async`.  In C, `state` is a variable or a
 * compound literal ({ 0 } if no field needs a value), and it is copied.  In C++, it is any
 * expression of a trivially copyable type.
 *
 * `state.async.fini` is called with the copy when the future is dropped, whether or not the future
 * has ended.  It is called after the awaited child has been dropped (the child may use the state),
 * and before the copy is freed.
 *
 * Returns TDT_FUTURE_NONE and sets errno to ENOMEM if there is no memory.  Then `fini` is not
 * called, and the caller still owns everything that `state` refers to.
 */
#ifdef __cplusplus
#define TDT_ASYNC_NEW(poll, ...) tdt_async_copy((poll), __VA_ARGS__)
#else
#define TDT_ASYNC_NEW(poll, ...)                                                                   \
	(__extension__({                                                                           \
		_Static_assert(offsetof(__typeof__(__VA_ARGS__), async) == 0, TDT__ASYNC_FIRST);   \
		tdt_async_new((poll), &__VA_ARGS__, sizeof(__VA_ARGS__));                          \
	}))
#endif

/*
 * Drop the future of an async function.  This is the `drop` of futures that tdt_async_new() makes.
 */
static inline void tdt_async_drop(void *state)
{
	struct tdt_async *async = (struct tdt_async *)state;

	tdt_future_drop(&async->child);
	if (async->fini != NULL)
		async->fini(state);
	free(state);
}

/*
 * The function behind TDT_ASYNC_NEW.  `state` points to the state to copy, which begins with a
 * struct tdt_async.  `size` is its size in bytes.
 */
static inline TDT_MUST_USE struct tdt_future
tdt_async_new(tdt_poll_t (*poll)(void *state, struct tdt_context *cx), const void *state,
	      size_t size)
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

/* Private: the library may want to know when awaits become ready.  Weak: none is needed. */
typedef void tdt__await_fn(const struct tdt_async *async);
extern __attribute__((weak)) tdt__await_fn *volatile tdt__await_ready;

/* The function behind TDT_AWAIT: poll the child that is awaited at `point`, on `line`. */
static inline tdt_poll_t tdt_async_await(struct tdt_async *async, struct tdt_context *cx,
					 uint32_t point, uint32_t line)
{
	tdt_poll_t result = tdt_future_poll(&async->child, cx);

	if (result == TDT_PENDING) {
		async->point = point;
		async->line = line;
	} else {
		tdt_future_drop(&async->child);
		if (&tdt__await_ready != NULL && tdt__await_ready != NULL)
			tdt__await_ready(async);
	}
	return result;
}

TDT_DECLS_END

#ifdef __cplusplus
template <typename State>
TDT_MUST_USE
inline tdt_future tdt_async_copy(tdt_poll_t (*poll)(void *state, tdt_context *cx),
				 const State &state)
{
	static_assert(__is_trivially_copyable(State),
		      "the state of an async function is copied as bytes");
	static_assert(__is_standard_layout(State) && offsetof(State, async) == 0,
		      TDT__ASYNC_FIRST);
	return tdt_async_new(poll, &state, sizeof(state));
}
#endif

#endif
