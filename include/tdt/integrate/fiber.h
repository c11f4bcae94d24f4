/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_FIBER_H
#define TDT_FIBER_H /* stable from 1.0: docs/compatibility.md */

/*
 * Tasks that are stackful coroutines of any library: fibers.  A fiber has a stack of its own, and a
 * scheduler switches from fiber to fiber.  It needs no futures, no polls and no wakers.
 *
 * The library that switches reports what it does with a fiber:
 *
 *	// The outermost function on the fiber's stack.
 *	static void entry(struct their_fiber *it)
 *	{
 *		TDT_FIBER_BASE(it->tdt);
 *		tdt_fiber_resume(it->tdt);
 *		it->function(it->arg);
 *		tdt_fiber_end(it->tdt);
 *		their_exit(it);         // switches away for the last time
 *	}
 *
 *	static void their_yield(struct their_fiber *it)
 *	{
 *		tdt_fiber_suspend(it->tdt);
 *		their_switch(it, &scheduler);
 *		tdt_fiber_resume(it->tdt);
 *	}
 *	...
 *	it->tdt = tdt_fiber_new(it->stack, it->stack_size, TDT_TASK_ATTR(.name = "session"));
 *
 * A fiber is a task.  It is in tdt_tasks(), in dumps and in the registry, it may be part of a
 * deadlock, and the probes fire for it: task-spawn, task-poll-start when it is resumed,
 * task-poll-end when it is suspended, task-terminate when it ends.  While it runs,
 * tdt_current_task_id() is its id, it is the parent of the tasks that it spawns, and
 * tdt_leaf_waits_on() notes what it waits for (call it before tdt_fiber_suspend()).
 * tdt_fiber_handle() gives its handle, for tdt_backtrace() and the like.
 *
 * A scheduler that calls tdt_task_woken() when it makes a fiber runnable has dumps tell runnable
 * fibers from waiting ones, and call a ring of fibers that wait for each other a deadlock.
 *
 * The stack of a suspended fiber stands still.  It is read as it is, without a wake-up, a poll or a
 * signal: by any thread, also by the thread that is the scheduler, and also while all threads that
 * run fibers are blocked.  The tree has one leaf, the function that called tdt_fiber_suspend().  A
 * running fiber is read as a running poll is.  A fiber that switches so often that it is not caught
 * standing answers a request itself, in tdt_fiber_suspend().  A fiber needs no last tree of
 * tdt_watch() and gets none, because it can be read at any time.
 *
 * The registers that tdt_fiber_suspend() stores are public (tdt/layout/registry.h), so that a
 * debugger or a reader of a core file can continue the stack of a suspended fiber.
 *
 * If the library's own functions know nothing of tdt, the calls can be made around them: a function
 * that calls their yield makes the calls before and after it.
 *
 * Each call takes NULL and then does nothing, so a program need not handle the failure of
 * tdt_fiber_new().  A resume and a suspend together cost about 10 ns, of which most is the coarse
 * clock; tdt_worker_now() avoids that.  No call is async-signal-safe.
 */

#include <stddef.h>
#include <stdint.h>

#include <tdt/decls.h>
#include <tdt/trace.h>

TDT_DECLS_BEGIN

struct tdt_fiber;

/*
 * Make a fiber that has not run yet, a task of its own.  Its stack has `size` bytes, of which `low`
 * is the lowest that can be read.  With `low` NULL and `size` 0 they are unknown; then a running
 * fiber is shown only if the whole stack up to TDT_FIBER_BASE() can be followed.  If the library
 * runs several fibers on one shared stack and copies their bytes to and fro, these are the bounds
 * of the shared stack: see tdt_fiber_moved().  `attr` may be NULL, as in tdt_traced_with().
 *
 * The fiber stays until tdt_fiber_end().  If its library destroys it without that call, no harm is
 * done, but the task is listed for ever, and the stack that is shown is whatever lies in that
 * memory by then.  (Memory that is no longer mapped is not shown.)
 *
 * Returns the fiber; NULL and sets errno: EINVAL (`low` without `size` or the reverse, or the stack
 * would wrap around; attr->size is 0), E2BIG (`attr` is of a newer library), ENOMEM (there is no
 * memory, or there are two million fibers).  Any thread.
 */
TDT_MUST_USE
struct tdt_fiber *tdt_fiber_new(void *low, size_t size, const struct tdt_task_attr *attr);

/*
 * Describe the stack of a coroutine that a traced future runs on: one task, not two.  `task` is the
 * handle of that future; the fiber takes a reference of its own.  The bounds are as in
 * tdt_fiber_new().  The polls of the future are what they were, and so are the probes and the
 * states of the task.  The future's poll resumes the coroutine, which calls tdt_fiber_resume() and
 * tdt_fiber_suspend() as in the example above.
 *
 * (A tdt_coroutine() needs no such call.)
 *
 * A request is still answered by a poll, which shows all leaves with the frames of the future.  If
 * no poll answers (all workers are blocked, or tdt_backtrace() is called where it would have to
 * refuse with EDEADLK), the suspended stack answers; so it does in a core file.  If several
 * coroutines of one future are reported, the one that was suspended last is shown.
 *
 * Returns the fiber; NULL and sets errno: EINVAL (`task` is NULL or itself a fiber; bounds as
 * above), ENOMEM.  Any thread.
 */
TDT_MUST_USE
struct tdt_fiber *tdt_fiber_of(struct tdt_handle *task, void *low, size_t size);

/*
 * Report where the frames of the fiber begin: `base` is the address where the frame of the
 * outermost function on its stack begins.  Use the macro, once, in the body of that function.  The
 * function must stay on the stack while the fiber runs, so it must not end in a tail call.  Without
 * this call, a tree ends with a function whose unwind information says that it has no caller.  If
 * there is none on the stack, the tree is truncated at the end of the stack, and says so.  Owner
 * thread only.
 */
void tdt_fiber_base(struct tdt_fiber *fiber, uintptr_t base);
#if defined(__x86_64__)
#define TDT_FIBER_BASE(fiber) tdt_fiber_base((fiber), (uintptr_t)__builtin_dwarf_cfa())
#else
#define TDT_FIBER_BASE(fiber) tdt_fiber_base((fiber), (uintptr_t)__builtin_frame_address(0))
#endif

/*
 * Report that the fiber runs on this thread from now on.  This is the first call after the switch
 * to the fiber's stack, and the first one when the fiber begins.  It may run on another thread than
 * before.  Owner thread only.
 */
void tdt_fiber_resume(struct tdt_fiber *fiber);

/*
 * Report that the fiber is about to be switched away from.  The function that calls this is on the
 * fiber's stack; it then switches away, or calls the function that switches, and does not return
 * before the fiber is resumed.  So the switch must not be a tail call (TDT_KEEP_FRAME() behind it
 * helps).  The tree of the fiber begins with this function, and whatever the library's switch
 * consists of needs no unwind information.
 *
 * The call itself answers a request that waits for the fiber, by a copy of the stack that the
 * requester walks.  That takes a microsecond or two, and less than 1 KiB of the fiber's stack (1.25
 * on aarch64), besides what a waker of the requester needs that is called then.  A fiber that runs
 * for longer is read by a signal, which needs more (tdt_backtrace()), unless the process has small
 * stacks.
 *
 * A scheduler that starts another fiber from the stack of this one first suspends this one.  If it
 * does not, this fiber counts as running.  It is then not shown as if the other's stack were its
 * own, if the bounds of its stack are known.
 *
 * Owner thread only: the thread on which the fiber runs.
 */
void tdt_fiber_suspend(struct tdt_fiber *fiber);

/*
 * Report that a part of a suspended fiber's stack lies elsewhere.  The `size` bytes that belong at
 * `from` lie at `to` now; they are everything from the stack pointer of the switch up to the base.
 * `to` NULL: they are back in their place.  This is for libraries that copy stacks.  Make the call
 * when the bytes are in both places: after they were copied, and before the old place is used for
 * anything else.  NULL for `from` does nothing.  Owner thread only.
 */
void tdt_fiber_moved(struct tdt_fiber *fiber, const void *from, const void *to, size_t size);

/*
 * Report that the fiber has ended, or is being destroyed, and free `fiber`.  The call may be made
 * on any stack, and before or after the last switch; call it before the memory of the stack is used
 * for anything else.  A running fiber is ready then, for tdt_join(); a suspended one was dropped.
 * For a fiber of tdt_fiber_of(), only the description of the stack ends.
 *
 * Owner thread only: no other call for this fiber may be made at the same time or later.
 */
void tdt_fiber_end(struct tdt_fiber *fiber);

/*
 * Return the handle of the fiber's task, or NULL for NULL.  The result is borrowed; keep it with
 * tdt_handle_ref() if it is needed after tdt_fiber_end().
 */
struct tdt_handle *tdt_fiber_handle(const struct tdt_fiber *fiber);

TDT_DECLS_END

#endif
