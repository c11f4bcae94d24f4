/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_LEAF_H
#define TDT_LEAF_H /* may change: docs/compatibility.md */

/*
 * For the author of a runtime whose tasks have neither a poll nor a stack that shows where they
 * wait: callbacks (tevent), chains of continuations (Seastar), stackless coroutines that their
 * runtime resumes at the innermost level (folly).  Such a runtime knows the chain of calls
 * itself.  It gives the library this chain as a list, and the list is the task's stack:
 *
 *	struct request {
 *		struct tdt_handle *task;
 *		struct tdt_leaf leaf;
 *		struct tdt_leaf_frame calls[MAX_DEPTH];         // outermost first
 *		...
 *	};
 *
 *	static void new_request(struct request *request)
 *	{
 *		request->task = tdt_task_new(TDT_TASK_ATTR(.name = request->path));
 *		request->leaf = (struct tdt_leaf){ .kind = TDT_LEAF_NAMED, .frames = request->calls };
 *		request->calls[request->leaf.n++] =
 *		    (struct tdt_leaf_frame){ .function = "serve", .file = __FILE__, .line = __LINE__ };
 *		...
 *	}
 *
 *	static void call_back(struct request *request)          // in the event loop
 *	{
 *		tdt_task_enter(request->task);                  // this thread runs the task
 *		request->callback(request);                     // says where it waits next, or ends
 *		tdt_task_leave(request->task);
 *	}
 *
 *	static void wait_for_reply(struct request *request)     // in a callback
 *	{
 *		tdt_leaf_at(request->task, NULL);               // from here on the list may change
 *		...
 *		tdt_leaf_at(request->task, &request->leaf);     // it waits there from its leave on
 *	}
 *
 *	static void end_request(struct request *request)
 *	{
 *		tdt_task_end(request->task);
 *		request->task = NULL;
 *	}
 *
 * tdt/callback.h has these lines ready for event loops.
 *
 * A request to a task that waits at a list is answered at once: nothing is woken and nothing is
 * polled, and it does not matter what the threads of the runtime are doing.  The list is shown in
 * traces and dumps as any stack is.  Readers outside the process and in core files find it in the
 * record of the task (tdt/layout/registry.h).
 *
 * A future that is polled may also give a list, if its own stack does not show where it waits.
 */

#include <tdt/decls.h>
#include <tdt/trace.h>
#include <tdt/tree.h>

TDT_DECLS_BEGIN

enum tdt_leaf_kind {
	TDT_LEAF_PCS = 1,  /* return addresses: each is looked up one byte before it.  To show the
			      place where a coroutine is resumed, add 1 to its address */
	TDT_LEAF_NAMED = 2 /* frames that have names, which are not looked up */
};

/* So many bytes of each string of a frame are shown. */
#define TDT_LEAF_TEXT_MAX 255

/* A frame that has a name.  An unknown string is NULL, an unknown number is 0. */
struct tdt_leaf_frame {
	const char *function;
	const char *file;
	uint32_t line;
	uint32_t column;
};

/* What a task waits for: as in tdt_leaf_waits_on_named().  0: an unknown object, owner or name. */
struct tdt_leaf_wait {
	uint32_t kind;      /* @0  enum tdt_wait_kind */
	uint32_t reserved;  /* @4 */
	const void *object; /* @8 */
	uint64_t owner;     /* @16 */
	const char *name;   /* @24 */
};

#define TDT_LEAF_WAITS_MAX 64 /* so many waits of a list are shown */

/*
 * Where a task waits.  The struct, its arrays, and the strings in the arrays belong to the caller,
 * who must not change or free them while the list is in force (tdt_leaf_at()).
 *
 * The library reads all of it through the kernel, and checks before and after that the list is in
 * force.  So a list that is freed too early, or has wrong pointers, leads to wrong or missing
 * frames, and to nothing worse.  (tdt_leaf_at() and tdt_task_leave() themselves read `waits`.)
 */
struct tdt_leaf {
	uint32_t kind; /* @0  enum tdt_leaf_kind */
	uint32_t n;    /* @4  the number of frames.  0: the task waits, but it is not known where;
			      this is shown as one frame, "(unknown)" */
	const void *frames; /* @8 the array of frames, the outermost one first: addresses (const
			       void *), or struct tdt_leaf_frame */

	/* These fields belong to the library. */
	uint64_t task;  /* @16 the id of the task for which the list was set */
	uint64_t polls; /* @24 `polls` of the task's record at that time */

	/* What the task waits for there; `n_waits` is 0 if that is unknown. */
	const struct tdt_leaf_wait *waits; /* @32 */
	uint32_t n_waits;                  /* @40 */

	/*
	 * While its task runs, a list may change, and so may `n` and `frames`, if this number
	 * becomes another one before.  (It stands still while the task waits.)
	 */
	uint32_t changes; /* @44 */
};

/*
 * Make a task that has no future: its runtime continues it by callbacks.  Like any task it is
 * listed and dumped, has the four probes of a task, and can be awaited (tdt_join()).  Its `polls`
 * count how often it went on.  It runs, on the calling thread, until tdt_leaf_at() says where it
 * waits, or until it is entered and left.
 *
 * `attr` is as in tdt_traced_with().  Returns the handle, for tdt_task_end().  On failure it
 * returns NULL and sets errno: EINVAL, E2BIG, ENOMEM (there is no memory, or there are two million
 * of such tasks and fibers).  Any thread.
 */
TDT_MUST_USE
struct tdt_handle *tdt_task_new(const struct tdt_task_attr *attr);

/*
 * Report that this thread runs the task from now on (enter), or no more (leave).  In between the
 * task is what a polled one is in its poll: tdt_current_task_id() is its id, it is the parent of
 * the tasks that are made, the tasks that are woken are woken by it, tdt_leaf_waits_on() notes what
 * it waits for, and the recorder has its runs as polls.  The stack of a run that lasts is read,
 * from the function that calls tdt_task_enter() inwards; what is shown is the list where the task
 * came from, and that stack behind it.  Use the macro: the function takes the address where the
 * frame of the calling function begins (0: unknown, and then the stack cannot be read).
 *
 * Other tasks may be entered in between, and left before this one; if this one ends before, they
 * go on.  Each call takes NULL, and then does nothing; so does a call for a task that has ended, or
 * has a future.  To enter a task twice, or to leave it in another order, or on another thread, is
 * misuse, which is noted (tdt/misuse.h).  A thread leaves its tasks before it ends: otherwise they
 * seem to run on it for ever.
 *
 * The pair takes 6 ns (60 instructions) on a thread that calls tdt_worker_now(), and 10 ns on any
 * other, which reads the coarse clock.  Owner thread only, as tdt_leaf_at().
 */
void tdt_task_enter_at(struct tdt_handle *task, uintptr_t base);
void tdt_task_leave(struct tdt_handle *task);
#if defined(__x86_64__)
#define tdt_task_enter(task) tdt_task_enter_at((task), (uintptr_t)__builtin_dwarf_cfa())
#else
#define tdt_task_enter(task) tdt_task_enter_at((task), (uintptr_t)__builtin_frame_address(0))
#endif

/*
 * End a task of tdt_task_new(), and give up the handle: no later call with it is allowed, except on
 * references of tdt_handle_ref().  The task is ready then, also if it was not left.  Does nothing
 * if `task` is NULL or has a future.  Owner thread only, as tdt_leaf_at().
 */
void tdt_task_end(struct tdt_handle *task);

/*
 * Report where the task waits: at `leaf`, and for what, in one call.  If `leaf` is NULL, report
 * that the task goes on.
 *
 * A task that this thread has entered waits at the list from its leave on; of several lists, the
 * last one counts.  The list stays until the next call of tdt_leaf_at() for the task, or its end:
 * only after that may it change, or be freed.  While the task runs, the list shows where it came
 * from; if it is left without another one, it waits there again (a callback that is called each
 * time).  After NULL it waits where nobody knows.
 *
 * A task that this thread has not entered waits at once, and the list is in force until the task
 * goes on: until the next call for the task, the next poll of its future, or its end.  Only then
 * may the list change.  A task of tdt_task_new() is waiting while a list is in force, and otherwise
 * running; it is not known on which stack.  For a task with a future, this call does not change
 * whether it waits; the runtime may report that the task is woken (tdt_task_woken()) as ever.
 *
 * In both cases the task answers requests by the list alone, so the list is all that it waits for.
 *
 * Inside a poll, NULL for `task` means the innermost task that is polled, or was entered, on this
 * thread.  The list of a poll is one leaf of it, beside those that clone the waker: make the call
 * as tdt_leaf_waits_on() is made, before the poll returns TDT_PENDING.  The list is in force until
 * the next poll begins.  A captured poll copies it at once.  If the task does not answer a later
 * request, a dump shows the last list of the last poll instead of a captured tree.
 *
 * At most 1,024 frames are shown, and no more than a request allows (struct tdt_backtrace_options):
 * the innermost ones.  Without memory for the names, frames are missing, and the place is marked; a
 * list without any frame left counts as a lost leaf.
 *
 * Takes 4 ns for a task that was entered, and some 3 ns more for each wait.  Outside, a call that
 * waits and one that goes on take 15 ns together, and 4 ns more for the coarse clock.  If a
 * request waits for the call, it answers the request, and then allocates.  Does nothing if the task
 * has ended, or if another thread is polling it, or if `task` is NULL outside of polls.  Owner
 * thread only: the thread that runs the task, or would poll it, at that time; threads may take
 * turns.
 */
void tdt_leaf_at(struct tdt_handle *task, struct tdt_leaf *leaf);

/*
 * Report one more wait of a task that waits at a list.  (Most are in the list itself.)  Call it
 * after tdt_leaf_at(); the report holds until the task goes on.  `name` may be NULL.
 *
 *	tdt_leaf_at(task, &leaf);
 *	tdt_task_waits_on(task, TDT_WAIT_MUTEX, mutex, mutex->holder, "room 1");
 *
 * A list is as old as the task's wait, so that a dump names a ring of such tasks a deadlock only by
 * the rules for tasks that do not answer (struct tdt_snapshot_cycle in tdt/dump.h).
 *
 * Does nothing if `task` is NULL.  Owner thread only, as tdt_leaf_at().
 */
void tdt_task_waits_on(struct tdt_handle *task, enum tdt_wait_kind kind, const void *object,
		       uint64_t owner, const char *name);

TDT_DECLS_END

#endif
