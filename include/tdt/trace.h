/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TRACE_H
#define TDT_TRACE_H /* stable from 1.0: docs/compatibility.md */

/*
 * Trace a future, and later request where it waits.
 *
 *	struct tdt_traced traced = tdt_traced(serve(connection));
 *	spawn_on_my_runtime(traced.future);
 *	...
 *	struct tdt_trace *trace = tdt_backtrace(traced.handle);   // any thread
 *	if (trace != NULL)
 *		tdt_trace_print(trace, stderr);
 *	tdt_trace_free(trace);
 *	tdt_handle_unref(traced.handle);
 *
 * How it works: a future that returns TDT_PENDING must have cloned the waker that it was polled
 * with.  After a request, the next poll is given a substitute waker of the library.  The
 * substitute's `clone` records the stack, from the *leaf* that clones up to the traced future.  The
 * stacks of all leaves are merged into the task's call tree.  Names are looked up later, when the
 * requester wants them (tdt/tree.h).  While there is no request, nothing is recorded, and a poll
 * costs some nanoseconds more.
 *
 * A leaf may clone its waker, then find that it is ready, and let the task go on to the next leaf
 * in the same poll.  The library must not report that the first leaf waits.  Therefore, in a poll
 * that was made for a request, the leaf's clone is a *counted clone*: a waker of the library that
 * forwards to a clone of the runtime's waker, and counts its holders.  When the poll has ended, the
 * library removes each leaf whose counted clone was dropped and never woken.  If that would remove
 * all leaves, they all stay.  See tdt_leaf_wakers().
 *
 * Errors: a call that returns a pointer returns NULL and sets errno; a call that returns an int
 * returns 0 or a negative errno, and sets errno too.  A call that succeeds leaves errno as it was,
 * and so does everything that the library adds to a poll.
 */

#include <stdbool.h>
#include <stdio.h>

#include <tdt/decls.h>
#include <tdt/future.h>

TDT_DECLS_BEGIN

struct tdt_handle; /* of a traced future: for requests from any thread, also after its end */
struct tdt_trace;  /* the answer to a request */

/*
 * The attributes that a task is traced with.  `size` is sizeof(struct tdt_task_attr).  The library
 * extends a smaller struct (of an older header) with zeros.  A larger struct gives E2BIG unless its
 * extra bytes are all zero.  A `size` of 0 gives EINVAL.
 */
struct tdt_task_attr {
	size_t size;
	uint64_t id;      /* 0: the library picks a number, counting from 1 (a runtime with ids of
			     its own calls tdt_task_id_base()) */
	const char *name; /* at most TDT_TASK_NAME_MAX bytes are copied; NULL or empty: none */
	const char *file; /* where the task was spawned.  The string must live as long as the
			     process, as __FILE__ does, unless `file_length` is given.  NULL:
			     unknown */
	uint32_t line;    /* in `file`; 0: unknown */
	uint32_t column;  /* in `line`, from 1; 0: unknown */

	/*
	 * The lengths of `file`, `name` and `default_name` in bytes, for languages whose strings do
	 * not end with a NUL.  0: the string ends with a NUL.  If `file_length` is given, the
	 * library keeps a copy of `file`, one for each text that it was ever given, as long as the
	 * process lives.
	 */
	size_t file_length;
	size_t name_length;

	/*
	 * A name for a task that has no `name`, for example the type of its future, or the function
	 * that runs in it.  Of a default name with more than TDT_TASK_NAME_MAX bytes the end is
	 * kept, because the end is what tells tasks apart: it is cut behind a `::` or before a word
	 * ("shop::orders::ship::{{closure}}" may become "orders::ship::{{closure}}").  NULL or
	 * empty: none.
	 */
	const char *default_name;
	size_t default_name_length;

	uint8_t id_later; /* 1: the task may get another id by tdt_hook_adopt()
			     (tdt/integrate/hooks.h), which has to follow */
	uint8_t reserved[3];
	uint32_t flags;   /* TDT_ATTR_PARENT, TDT_ATTR_CHILD, TDT_ATTR_BLOCKING; other bits give
			     EINVAL */
	uint64_t parent;  /* with TDT_ATTR_PARENT: the id of the task on whose behalf this one is
			     spawned; 0: none.  Without: the task that spawns it */
	uint64_t entry;   /* the address of the function that a fiber or a task of tdt_task_new()
			     runs: readers outside the process show its name if the task has none.
			     0: unknown */
};

#define TDT_ATTR_PARENT 1u
#define TDT_ATTR_CHILD 4u    /* the task is a part of its parent, which awaits it: a dump shows it
				there (struct tdt_task_info) */
#define TDT_ATTR_BLOCKING 8u /* the task is a call that may block, on a thread for such calls: it
				keeps no worker, and a dump says so */
#define TDT_ATTR_PANICKED 2u /* only in tdt_hook_terminate(): the task ends by a panic */

#define TDT_TASK_NAME_MAX 63

/*
 * A pointer to a struct tdt_task_attr that holds the place of the macro.  More fields can be set by
 * name, in C and in C++20: TDT_TASK_ATTR(.name = "accept").  Before C++20 (from C++14 on) the
 * arguments are the first fields of struct tdt_task_fields, in this order: TDT_TASK_ATTR("accept").
 * TDT_TASK_ATTR("accept") does not compile in C.  (In C, gcc's -Woverride-init warns if `.file` or
 * `.line` is given again.)  The struct lives until the end of the enclosing block (C) or of the
 * full expression (C++).
 */
#ifdef __cplusplus
}
/* Fields of struct tdt_task_attr, which has their meaning.  `file` is that of the macro if it is
 * NULL, and so is `line`. */
struct tdt_task_fields {
	const char *name = nullptr;
	uint64_t id = 0;
	const char *file = nullptr;
	uint32_t line = 0;
	uint32_t column = 0;
	const char *default_name = nullptr;
	uint8_t id_later = 0;
	uint32_t flags = 0;
	uint64_t parent = 0;
};
struct tdt_task_attr_here : tdt_task_attr {
	tdt_task_attr_here(const tdt_task_fields &fields, const char *file_, uint32_t line_)
	    : tdt_task_attr()
	{
		size = sizeof(tdt_task_attr);
		id = fields.id;
		name = fields.name;
		file = fields.file != nullptr ? fields.file : file_;
		line = fields.file != nullptr ? fields.line : line_;
		column = fields.column;
		default_name = fields.default_name;
		id_later = fields.id_later;
		flags = fields.flags;
		parent = fields.parent;
	}
	const tdt_task_attr *get() const { return this; }
};
extern "C" {
#define TDT_TASK_ATTR(...)                                                                         \
	(tdt_task_attr_here(tdt_task_fields{ __VA_ARGS__ }, __FILE__, __LINE__).get())
#else
#define TDT_TASK_ATTR(...)                                                                         \
	(&(struct tdt_task_attr){                                                                  \
		.size = sizeof(struct tdt_task_attr) +                                             \
			0 * TDT__TASK_ATTR_CHECK(TDT__TASK_ATTR_TEXT(__VA_ARGS__)),                \
		.file = __FILE__, .line = __LINE__, __VA_ARGS__ })

/* The arguments of TDT_TASK_ATTR() as a string: their macros are replaced first. */
#define TDT__TASK_ATTR_TEXT(...) TDT__TASK_ATTR_STRING(__VA_ARGS__)
#define TDT__TASK_ATTR_STRING(...) #__VA_ARGS__

/*
 * Refuse arguments that do not begin with a dot.  (Clang takes the call for a constant behind
 * __builtin_constant_p() only, and gcc takes `text[0]` for none.)
 */
#define TDT__TASK_ATTR_CHECK(text)                                                                 \
	(__extension__ sizeof(struct {                                                             \
		_Static_assert(__builtin_constant_p(1) ?                                           \
				       sizeof(text) == 1 || __builtin_strncmp(text, ".", 1) == 0 : \
				       0,                                                          \
			       "name the fields of TDT_TASK_ATTR(): .name = \"accept\"");          \
		char unused;                                                                       \
	}))
#endif

/* The result of tdt_traced_with(): the future to spawn, and the handle for requests. */
struct TDT_MUST_USE_TYPE tdt_traced {
	struct tdt_future future;
	struct tdt_handle *handle;
};

/*
 * Wrap `fut`, so that requests can find out where it waits.  The wrapper takes `fut` over.  It is
 * ready when `fut` is ready, is woken when `fut` is woken, polls `fut` once in each of its own
 * polls, and drops `fut` when it is dropped itself.  If `fut` has no `drop`, its owner drops it
 * after the wrapper, and it cannot be aborted (tdt/join.h).
 *
 * `attr` (may be NULL) is read before the call returns.  `handle` belongs to the caller, who unrefs
 * it with tdt_handle_unref().  `future` and `handle` may be dropped in either order, from any
 * thread.
 *
 * On failure, the result holds the caller's own future, unwrapped, and a NULL handle. errno is
 * EINVAL (`fut` is TDT_FUTURE_NONE, and the errno of the call that failed to make it is
 * overwritten; or attr->size is 0 or its flags are unknown), E2BIG (attr is of a newer library) or
 * ENOMEM.  No future is lost: a program that does not look at the handle continues untraced.
 *
 * The wrapper changes nothing for futures that break the rules of the ABI, except during a capture.
 * Then the waker that a leaf borrows belongs to the library.  If the leaf calls its `wake`, the
 * waker is woken by reference; if the leaf calls its `drop`, nothing happens.  If the leaf keeps a
 * pointer to it beyond the poll, waking that pointer wakes nothing, and cloning it returns NULL, as
 * long as the task lives.  A poll result that the ABI does not define counts as TDT_PANICKED.  A
 * poll that unwinds (a C++ exception, a thread that exits or is cancelled) also ends the task as
 * TDT_PANICKED.  Its requesters get their answer, and the unwinding continues.
 *
 * The first call in a process starts two threads, which sleep until a tree is requested (tdt(3),
 * "Threads, signals, fork").
 *
 * Cost: a poll without a request takes some nanoseconds more.  In a runtime whose wakers are not
 * their own clones (`clone` returns another pointer than it was given), each pending poll also
 * takes one more clone and drop.  Any thread.
 */
TDT_MUST_USE
struct tdt_traced tdt_traced_with(struct tdt_future fut, const struct tdt_task_attr *attr);

/*
 * tdt_traced(fut) is tdt_traced_with(), with the place of the macro as the place where the task was
 * spawned.
 */
#define tdt_traced(...) tdt_traced_with((__VA_ARGS__), TDT_TASK_ATTR())

/*
 * Request where the task waits, and block until the answer is there, for at most 1 second.
 *
 * The library wakes the task through its real waker, the runtime polls the task as usual, and that
 * poll answers the request.  A task that has not been polled yet answers with its first poll.  One
 * capture answers all requests that were made before it began.
 *
 * A task that is stuck in the middle of a poll (it computes, blocks its thread, or is deadlocked)
 * cannot answer.  If one poll goes on for 5 ms after the request, the library reads its stack from
 * outside.  The answer is then a trace with the state TDT_TASK_RUNNING, the thread, and the system
 * call in which the thread is blocked.
 *
 * Reading the stack does not disturb a thread that is blocked.  A thread that runs is sent a
 * signal: the highest real-time signal that has the default disposition when such a signal is first
 * needed.  From then on the signal has a handler of the library.  If the thread blocks at that very
 * moment, poll(2), select(2), epoll_wait(2), nanosleep(2), and calls with a time limit may return
 * EINTR; calls that SA_RESTART covers continue.  The handler runs on the thread's alternate stack,
 * if the thread has one (sigaltstack(2)), otherwise on the stack that the thread is on, for example
 * the stack of a coroutine.  It needs the space that the kernel uses there,
 * getauxval(AT_MINSIGSTKSZ) bytes, and 1 KiB more.  A process that has reported a stack of less
 * than TDT_COROUTINE_MIN_STACK bytes (tdt_fiber_new(), tdt_fiber_of(), tdt_stack_enter()) is sent
 * no such signal.
 *
 * Returns a trace, which the caller frees with tdt_trace_free().  On failure it returns NULL and
 * sets errno:
 *   ESRCH      The task has ended or was dropped, before the call or during it, and no poll took
 *              the request.
 *   ETIMEDOUT  There was no answer in time: the runtime did not poll the task, or the task is in
 *              the middle of a poll whose stack cannot be read.  The latter happens if the thread
 *              runs and blocks the signal, if no signal is free, if a small stack was reported,
 *              if there is no /proc, or if the thread is on another stack than the poll (the stack
 *              of a signal handler, or of a coroutine that was not reported).  tdt_task_inspect()
 *              (tdt/tasks.h) reports which of the two it is.  The request is withdrawn; it may
 *              still cause one spurious poll.
 *   EDEADLK    The caller is inside a poll of a traced future, or on a worker that runs tasks
 *              (tdt_worker_thread_start()), so it may be the thread that has to poll the task.  Use
 *              tdt_backtrace_async() or TDT_BACKTRACE_ON_WORKER there.  (A thread that polls tasks
 *              and never reported that it does is blocked until the time is up.)
 *   EFAULT     The task is a suspended fiber (tdt/integrate/fiber.h), and its stack cannot be read.
 *   ENOTSUP    The task is a fiber that was suspended by a function on another stack.
 *   EINVAL     `handle` is NULL.
 *   ENOMEM     There is no memory for the request or for the answer.
 *
 * A suspended fiber is read at once, without a request: then there is neither a wait nor EDEADLK,
 * not even on the thread that has to resume it.
 *
 * A request that a poll took gets a trace if that poll returns in time, even if the poll ended the
 * task: see tdt_trace_info().
 *
 * Any thread.  Not async-signal-safe.  In a child of fork(), only the tasks of the forking thread
 * can answer, and only the polls of this thread are read.
 */
TDT_MUST_USE
struct tdt_trace *tdt_backtrace(struct tdt_handle *handle);

/* Bits of `flags` in struct tdt_backtrace_options. */
enum tdt_backtrace_flag {
	TDT_BACKTRACE_NO_WAIT = 1,  /* make the request, wake the task, and return at once: mostly
				       ETIMEDOUT, unless the runtime polls the task inside the
				       wake-up.  No stack of a running poll is read */
	TDT_BACKTRACE_ON_WORKER = 2 /* allow the call on workers and inside polls of other tasks,
				       which it blocks, as NO_WAIT is.  Inside a poll of the
				       requested task itself it gives EDEADLK even so */
};

/* Options of tdt_backtrace_with().  All zero but `size` means the defaults of tdt_backtrace(). */
struct tdt_backtrace_options {
	size_t size;         /* sizeof(struct tdt_backtrace_options), with the rules of struct
				tdt_task_attr */
	int64_t timeout_ns;  /* 0: 1 second; negative: EINVAL */
	uint32_t max_frames; /* the most frames that are walked for a leaf; 0: TDT_MAX_FRAMES.  A
				longer stack is truncated, and marked */
	uint32_t flags;      /* enum tdt_backtrace_flag; other bits give EINVAL */
};

#define TDT_MAX_FRAMES 256

/*
 * Do the same as tdt_backtrace(), with options (NULL: the defaults).  The errors are those of
 * tdt_backtrace(), EINVAL also if an option is wrong, and E2BIG.
 */
TDT_MUST_USE
struct tdt_trace *tdt_backtrace_with(struct tdt_handle *handle,
				     const struct tdt_backtrace_options *options);

/*
 * Make a request from async code: a future that is ready when the answer is there.  Of the options
 * (NULL: the defaults) `max_frames` counts; `timeout_ns` and `flags` are 0, since the future has no
 * time limit of its own.  If a poll of the task is in progress, the future waits for the end of
 * that poll, however long that takes, and never reads its stack.
 *
 * When the future is ready, `*out` is the trace, which the caller frees, and `*error` is 0; or
 * `*out` is NULL, and `*error` is the negative of an errno of tdt_backtrace().  `error` may be
 * NULL.  `out` and `error` must outlive the future; only the future's poll writes to them.
 *
 * A task may await its own backtrace.  Dropping the future withdraws the request.  The caller may
 * unref `handle` while the future waits.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`handle` or `out` is NULL, or an option is
 * wrong), E2BIG, ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_backtrace_async(struct tdt_handle *handle,
				      const struct tdt_backtrace_options *options,
				      struct tdt_trace **out, int *error);

/*
 * Choose the polls in which leaves get counted clones: wakers of libtdt that forward to a clone of
 * the runtime's waker, and count their holders.
 *
 *   never called   polls that were made for a request
 *   true           these polls, and the polls that the watch captures (tdt/watch.h)
 *   false          no poll
 *
 * TDT_LEAF_WAKERS=1 and TDT_LEAF_WAKERS=0 in the environment do the same, from the first traced
 * future on.  After a call of this function, the environment is no longer looked at.  A change
 * applies to polls that begin after it.  Counted clones that are still held keep forwarding.
 *
 * Two kinds of programs must turn counted clones off.  The first kind has a runtime or a leaf that
 * casts an owned waker to a type of its own.  (Such code may instead call tdt_waker_beneath() of
 * tdt/integrate/hooks.h before the cast; then counted clones may stay on.)  The second kind has a
 * leaf that takes what it needs out of its waker, and then drops the waker.
 *
 * Without counted clones, the library still recognizes many of the leaves that have gone on, by the
 * names of the functions that called them, and marks places where it is in doubt.
 *
 * Cost: about 30 ns for each leaf in a poll with counted clones, and about 20 ns for each leaf in
 * the next poll, where the leaf registers again.  Any thread; async-signal-safe.
 */
void tdt_leaf_wakers(bool on);

/*
 * Return the handle of a traced future.  The result is borrowed; keep it with tdt_handle_ref().
 * Returns NULL if `fut` is NULL, or was not made by tdt_traced_with().
 */
struct tdt_handle *tdt_future_handle(const struct tdt_future *fut);

/* Return the id of the handle's task, or 0 for NULL.  Any thread; async-signal-safe. */
uint64_t tdt_handle_id(const struct tdt_handle *handle);

/*
 * Take one more reference to `handle`, which is unref'd separately.  Returns `handle`.  Any thread.
 */
struct tdt_handle *tdt_handle_ref(struct tdt_handle *handle);

/*
 * Give up one reference to `handle`.  NULL does nothing.  Never cancels the task, never blocks.
 * Any thread.
 */
void tdt_handle_unref(struct tdt_handle *handle);

/*
 * Return the id of the traced task that is being polled on this thread, or that the thread has
 * entered (tdt_task_enter() in tdt/integrate/leaf.h); 0: there is none.  If one traced task is
 * polled or entered inside another one, it is the id of the inner one.  Outside of traced
 * tasks it is the id of the task whose poll the runtime reports (tdt_hook_poll_start()).
 * Async-signal-safe.
 */
uint64_t tdt_current_task_id(void);

/*
 * Print `trace` to `out` as text: the task's line, then its tree.  (tdt/print.h has other forms.)
 * If the names have not been looked up yet, the call looks them up, for 5 seconds at most
 * (tdt_trace_root()).
 *
 * Returns 0, or a negative errno and sets errno: -EINVAL, -ENOMEM, or the error of writing to `out`
 * (-ENOSPC, -EPIPE if the process ignores SIGPIPE, and others).  `out` is flushed, so that a full
 * disk is reported here and not later.  If several threads print to one `out`, the lines of each
 * trace stay together.
 */
int tdt_trace_print(const struct tdt_trace *trace, FILE *out);

/*
 * Print to `out` where every live traced task waits.  This is tdt_dump_with() (tdt/dump.h) with its
 * defaults: text, and at most 1 second.  Returns 0, or a negative errno and sets errno.
 */
int tdt_dump(FILE *out);

/* Free a trace.  NULL does nothing.  Any thread. */
void tdt_trace_free(struct tdt_trace *trace);

/* Options of tdt_listen().  All zero but `size` means the defaults; there are no others yet. */
struct tdt_listen_options {
	size_t size;    /* sizeof(struct tdt_listen_options), as in struct tdt_task_attr */
	uint64_t flags; /* 0 */
};

/*
 * Open the door: listen for requests from outside the process, as of tdt(1)
 * (tdt/layout/outside.h).  `options` may be NULL.
 *
 * The call takes two descriptors, which are closed on exec, and starts two threads with all signals
 * blocked, "tdt-door" and "tdt-recorder", which sleep until a reader comes.  Each connection takes
 * one more descriptor.  If the program closes them all, as a daemon does, the door is closed for
 * good, and nothing else that gets their numbers is touched; call tdt_listen() again after that.
 *
 * A child of fork() has no door, and none of its parent's connections, until it calls tdt_listen()
 * itself (or, with TDT_OUTSIDE=1, makes a traced future).
 *
 * Returns 0, also if the door is open already.  Returns a negative errno and sets errno: -EPERM
 * (TDT_OUTSIDE=0), -EMFILE, -ENFILE, -ENOMEM, -EAGAIN (no thread could be started), -EINVAL or
 * -E2BIG (`options`).  Then nothing has changed.  Any thread.
 */
int tdt_listen(const struct tdt_listen_options *options);

TDT_DECLS_END

#endif
