/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TRACE_H
#define TDT_TRACE_H

/*
 * Trace a future, and later ask where it waits.
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
 * How it works: a future that returns TDT_PENDING must have cloned the waker it was polled with.
 * When somebody asks, the next poll is given a waker of ours whose clone records the stack, from
 * the *leaf* that clones up to the traced future.  The stacks of the leaves make the task's call
 * tree.  Names are found later, on the requester's thread (tdt/tree.h).  While nobody asks nothing
 * is recorded, and a poll costs some nanoseconds more.
 *
 * A leaf may clone its waker, then find that it is ready, and let the task go on to the next leaf
 * in the same poll.  So that it is not taken for one that waits, in a poll that was made for a
 * request the leaf's clone is a *counted clone*: a waker of ours that forwards to a clone of the
 * runtime's, and counts who holds it.  When the poll has ended, the leaves whose counted clone was
 * dropped and never woken are taken out, unless all were.  See tdt_leaf_wakers().
 *
 * Errors: a call that returns a pointer returns NULL and sets errno; one that returns an int returns 0 or a negative
 * errno, and sets errno too.  A call that succeeds leaves errno as it was, and so does what the library
 * adds to a poll.
 */

#include <stdbool.h>
#include <stdio.h>

#include <tdt/future.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct tdt_handle; /* of a traced future: to ask it, from any thread, whether or not it still lives */
struct tdt_trace;  /* an answer */

/*
 * What is known of a task from the start.  `size` is sizeof(struct tdt_task_attr) (a smaller one, of an older header,
 * is extended with zeros; a larger one whose extra bytes are not all zero is E2BIG; 0 is EINVAL).
 */
struct tdt_task_attr {
	size_t size;
	uint64_t id;      /* 0: a number is picked, counting from 1 (tdt_task_id_base() is for runtimes with own ids) */
	const char *name; /* copied, at most TDT_TASK_NAME_MAX bytes of it; NULL or empty: none */
	const char *file; /* where it was spawned; must live as long as the process, as __FILE__ does; NULL: unknown */
	uint32_t line;    /* in `file`; 0: unknown */
	uint32_t column;  /* in `line`, from 1; 0: unknown */
};

#define TDT_TASK_NAME_MAX 63

/*
 * A pointer to a task's attributes with the place of the macro filled in.  In C more fields can be set by name:
 * TDT_TASK_ATTR(.name = "accept").  In C++ (C++11 and later) the arguments are, in order, name and id:
 * TDT_TASK_ATTR("accept").  (In C, gcc's -Woverride-init warns where `.file` or `.line` is given again.)  The struct
 * lives until the end of the enclosing block (C) or full expression (C++).
 */
#ifdef __cplusplus
}
struct tdt_task_attr_here : tdt_task_attr {
	explicit tdt_task_attr_here(const char *name_ = nullptr, uint64_t id_ = 0,
				    const char *file_ = __builtin_FILE(), uint32_t line_ = __builtin_LINE())
	{
		size = sizeof(tdt_task_attr);
		id = id_;
		name = name_;
		file = file_;
		line = line_;
		column = 0;
	}
	const tdt_task_attr *get() const { return this; }
};
extern "C" {
#define TDT_TASK_ATTR(...) (tdt_task_attr_here(__VA_ARGS__).get())
#else
#define TDT_TASK_ATTR(...)                                                                                             \
	(&(struct tdt_task_attr){                                                                                      \
		.size = sizeof(struct tdt_task_attr), .file = __FILE__, .line = __LINE__, __VA_ARGS__ })
#endif

/* What tdt_traced_with() returns: the future to spawn, and the handle to ask. */
struct tdt_traced {
	struct tdt_future future;
	struct tdt_handle *handle;
};

/*
 * Wrap `fut`, so that it can be asked where it waits.  The wrapper takes `fut` over; it is ready when `fut` is, wakes
 * when `fut` does, polls it once a poll, and drops it when it is dropped itself.
 *
 * `attr` (may be NULL) is read before the call returns.  `handle` belongs to the caller, who gives it back with
 * tdt_handle_unref(); `future` and `handle` may be dropped in either order, from any thread.
 *
 * On failure the caller's own future comes back as it was, unwrapped, with a NULL handle: errno is EINVAL (`fut` is
 * TDT_FUTURE_NONE, whose maker's errno is lost then, or has no drop; attr->size is 0), E2BIG (attr is of a newer
 * library) or ENOMEM.  Nothing is lost: a program that doesn't look at the handle goes on untraced.
 *
 * What breaks the rules of the ABI is passed on as it is, but during a capture: then the waker a leaf borrows is ours.
 * To `wake` it is to wake it by reference, to `drop` it does nothing, and a pointer to it that is kept beyond the poll
 * wakes nobody, and has NULL for a clone, as long as the task lives.  A result that is none counts as TDT_PANICKED.  A
 * poll that unwinds (a C++ exception, a thread that exits or is cancelled) ends the task as TDT_PANICKED too, and who
 * asked is answered; the unwinding goes on.
 *
 * The first call of a process starts two threads, which sleep until a tree is asked for (tdt(3), "Threads, signals, fork").
 *
 * Cost: a poll nobody asks about, some nanoseconds.  A runtime whose wakers are not their own clones (`clone` returns
 * another pointer than it was given) pays one more clone and drop a pending poll.  Any thread.
 */
struct tdt_traced tdt_traced_with(struct tdt_future fut, const struct tdt_task_attr *attr);

/* tdt_traced(fut): the same, with the place of the call as the place the task was spawned. */
#define tdt_traced(...) tdt_traced_with((__VA_ARGS__), TDT_TASK_ATTR())

/*
 * Ask where the task waits, and block until it tells, 1 second at most.
 *
 * The task is woken through its real waker, is polled by its runtime as ever, and that poll answers.  A task that has
 * not been polled yet answers with its first poll.  All that ask before a capture begins are answered by that one.
 *
 * A task that is stuck in the middle of a poll (it computes, blocks its thread, is deadlocked) tells nothing.  If one
 * poll goes on for 5 ms after it was asked, its stack is read from outside, and is the answer: a trace with state
 * TDT_TASK_RUNNING, the thread, and the system call the thread is blocked in.  A thread that is blocked is not disturbed
 * by that.  One that runs is sent a signal: the highest real-time signal that has the default disposition when it is
 * first needed, which has a handler of the library's from then on.  Should the thread block just then, poll(2), select(2),
 * epoll_wait(2), nanosleep(2), and what waits with a time limit, may return EINTR; what SA_RESTART covers goes on.
 * The handler runs on the thread's alternate stack, if it has one (sigaltstack(2)), else on the
 * stack that the thread is on: a coroutine's, say.  There must be room for what the kernel puts
 * there, getauxval(AT_MINSIGSTKSZ) bytes, and 1 KiB.
 *
 * Returns a trace, for the caller to free with tdt_trace_free(); or NULL and errno:
 *   ESRCH      the task has ended or was dropped, before or meanwhile, and no poll took the request
 *   ETIMEDOUT  not answered in time: its runtime didn't poll it; or it is in the middle of a poll whose stack can't be
 *              read, since its thread runs with that signal blocked, or with no signal left for it,
 *              or there is no /proc, or the thread is on another stack than the poll (a signal's, or
 *              a coroutine's that nobody tells of).
 *              tdt_task_inspect() (tdt/tasks.h) says which.  The request is withdrawn; the task may see one spurious
 *              poll of it
 *   EDEADLK    asked from inside a poll of a traced future, or on a worker thread (tdt_worker_thread_start()): it could
 *              be the one that has to poll the task.  Use tdt_backtrace_async() there, or tdt_backtrace_timed().  (A
 *              thread that polls tasks and never said so is blocked until the time is up.)
 *   EINVAL     `handle` is NULL
 *   ENOMEM     no memory for the request or for the answer
 * A request that a poll took gets a trace if that poll returns in time, also when it ended the task: tdt_trace_info().
 *
 * Any thread.  Not async-signal-safe.  In a child of fork() only the forking thread's tasks can answer, and only its
 * polls are read.
 */
struct tdt_trace *tdt_backtrace(struct tdt_handle *handle);

/*
 * The same with a limit of `timeout_ns` nanoseconds; negative is EINVAL.  0 asks, wakes, and returns at once with what
 * there is: mostly ETIMEDOUT, but a trace (to be freed) if the runtime polls the task inside its wake, or is that
 * quick.  No running poll is read then.  May be called on a worker thread and inside polls of other tasks, which it
 * blocks so long; inside the asked task's own poll it is EDEADLK.
 */
struct tdt_trace *tdt_backtrace_timed(struct tdt_handle *handle, int64_t timeout_ns);

/* Choices for tdt_backtrace_with(); all zero but `size` means: as tdt_backtrace() does. */
struct tdt_backtrace_options {
	size_t size;         /* sizeof(struct tdt_backtrace_options); the rules of struct tdt_task_attr */
	int64_t timeout_ns;  /* 0: 1 second; negative: EINVAL */
	uint32_t max_frames; /* most frames walked for a leaf; 0: TDT_MAX_FRAMES.  What is beyond is cut, and marked */
};

#define TDT_MAX_FRAMES 256

/* The same with options (NULL: the defaults).  EDEADLK and errors as tdt_backtrace_timed(), and E2BIG. */
struct tdt_trace *tdt_backtrace_with(struct tdt_handle *handle, const struct tdt_backtrace_options *options);

/*
 * The same for async code: a future that is ready when the answer is there, with no time limit of its own.  It waits
 * for the end of a poll that goes on, however long that takes, and reads no running poll.  When it is ready, `*out` is
 * the trace (for the caller to free) or NULL, and `*error` (unless `error` is NULL) 0 or a negative errno as
 * tdt_backtrace() would set.  Both are written only from the future's own poll, and must outlive it.  A task may await
 * its own backtrace.  Dropping the future withdraws the request.  The handle may be given back meanwhile.
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (`handle` or `out` is NULL), ENOMEM.
 */
struct tdt_future tdt_backtrace_async(struct tdt_handle *handle, struct tdt_trace **out, int *error);

/*
 * Choose which polls give leaves counted clones: a waker of libtdt's, which forwards to a clone of
 * the runtime's waker.
 *
 *   never called   polls that were made for a request
 *   true           those, and the polls that the watch captures (tdt/watch.h)
 *   false          none
 *
 * In the environment, TDT_LEAF_WAKERS=1 and =0 do the same from the first traced future on; who has
 * called this is not asked for it.  A change counts for polls that begin after it; counted clones
 * that are held keep forwarding.
 *
 * These must turn them off: a runtime or a leaf that casts an owned waker to a type of its own (or
 * asks it with tdt_waker_beneath(), tdt/hooks.h, instead); and a program with a leaf that takes
 * what it needs out of its waker and then drops the waker.  Without counted clones a leaf that has
 * gone on is still recognized by the names of the functions it was called by, in many cases, and
 * marked in others.
 *
 * Cost: some 30 ns a leaf in a poll that gives them, and some 20 ns a leaf in the next poll, where
 * the leaf registers again.  Any thread; async-signal-safe.
 */
void tdt_leaf_wakers(bool on);

/*
 * The handle of a traced future, borrowed: tdt_handle_ref() it to keep it.  NULL if `fut` is NULL, or not one that
 * tdt_traced_with() made.
 */
struct tdt_handle *tdt_future_handle(const struct tdt_future *fut);

/* The id of the handle's task; 0 for NULL.  Any thread; async-signal-safe. */
uint64_t tdt_handle_id(const struct tdt_handle *handle);

/* One more reference, for somebody else to give back.  Returns `handle`.  Any thread. */
struct tdt_handle *tdt_handle_ref(struct tdt_handle *handle);

/* Give a reference back.  NULL does nothing.  Never cancels the task, never blocks.  Any thread. */
void tdt_handle_unref(struct tdt_handle *handle);

/*
 * The id of the traced task that is being polled on this thread (the innermost, where one is polled inside another);
 * 0: none.  Async-signal-safe.
 */
uint64_t tdt_current_task_id(void);

/*
 * Print `trace` to `out` as text: the task's line, then its tree (tdt/print.h has other forms).  Names are looked up
 * now, if they haven't been, for 5 seconds at most (tdt_trace_root()).  Returns 0 or a negative errno (-EINVAL, -ENOMEM, or what writing `out` gave: -ENOSPC,
 * -EPIPE if the process ignores SIGPIPE...); `out` is flushed, so that a full disk is not found out later.  The lines
 * come out in one piece where several threads print to one `out`.
 */
int tdt_trace_print(const struct tdt_trace *trace, FILE *out);

/*
 * Print to `out` where every live traced task waits: tdt_dump() (tdt/dump.h) with its defaults, text and 1 second at
 * most.  Returns 0 or a negative errno.
 */
int tdt_dump_all(FILE *out);

/* Free an answer.  NULL does nothing.  Any thread. */
void tdt_trace_free(struct tdt_trace *trace);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
