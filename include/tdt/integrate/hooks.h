/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_HOOKS_H
#define TDT_HOOKS_H /* stable from 1.0: docs/compatibility.md */

/*
 * For the author of a runtime: the events that a runtime can report to libtdt.  All of these calls
 * are optional.  A traced future works on a runtime that does not know tdt at all, and even then it
 * fires the probes task-spawn, task-poll-start, task-poll-end, task-terminate and task-waker-clone.
 * The calls in this header fire the other probes (man 7 tdt-probes).
 *
 *	static void *worker(void *arg)
 *	{
 *		tdt_worker_thread_start(NULL);
 *		while (!stopping) {
 *			if (nothing_to_do()) {
 *				tdt_worker_thread_park();
 *				wait_for_something_to_do();
 *				tdt_worker_thread_unpark();
 *			}
 *			tdt_worker_now(monotonic_ns());
 *			poll_what_is_runnable();
 *		}
 *		tdt_worker_thread_stop();
 *		return NULL;
 *	}
 *
 * Each call costs a test of a flag or a few stores, unless a tracer is attached to its probe.  On a
 * thread that never calls tdt_worker_now(), tdt_task_woken() and tdt_worker_thread_park() also read
 * the coarse clock, about 7 ns.
 */

#include <stdint.h>

#include <tdt/decls.h>
#include <tdt/trace.h>
#include <tdt/tree.h>

TDT_DECLS_BEGIN

/* What a worker says of itself.  Fields will follow. */
struct tdt_worker_attr {
	size_t size;    /* sizeof(struct tdt_worker_attr) */
	uint64_t flags; /* 0, or TDT_WORKER_ALL_WAKES */
};

/*
 * A promise: of each task that this worker polls, if the runtime reports any wake-up of it
 * (tdt_task_woken()), it reports every call of its wakers, also if the task is runnable, is being
 * polled, or has ended.  Then a lost wake-up can be told: if a task that was polled only for a
 * request goes on, and no wake-up was reported, nobody has woken it.  A runtime that leaves some
 * calls out must not promise: healthy programs would be blamed.
 */
#define TDT_WORKER_ALL_WAKES UINT64_C(1)

/*
 * Report that this thread begins to poll tasks (start), or will poll tasks no more (stop).  The two
 * calls do not nest.  They fire the probes worker-thread-start and worker-thread-stop.  Call them
 * on the worker's own thread.  `attr` may be NULL; what is unknown of it is ignored.
 *
 * On a worker that runs tasks, tdt_backtrace() fails with EDEADLK: it would block a thread that may
 * have to poll the task.  A worker runs tasks if it is the last thread that polled some task which
 * has not ended.
 *
 * Some runtimes call their hooks for the start and the stop of a thread also on threads that they
 * keep for blocking calls and that poll no tasks (tokio's on_thread_start on the threads of
 * spawn_blocking).  No harm is done if such a thread makes these calls.  The two probes fire for it
 * too, and tdt_backtrace() works on it, unless it is called inside a poll.
 */
void tdt_worker_thread_start(const struct tdt_worker_attr *attr);
void tdt_worker_thread_stop(void);

/*
 * Report that this worker is about to wait for work (park), or has been woken (unpark).  Between
 * the two calls the worker is idle.  The calls fire the probes worker-thread-park and
 * worker-thread-unpark, and note since when the worker is idle (struct tdt_registry_thread in
 * tdt/layout/registry.h).  Call them on the worker's own thread.
 */
void tdt_worker_thread_park(void);
void tdt_worker_thread_unpark(void);

/*
 * Report that the task of `handle` is being woken.  Call it from the code that owns the waker: the
 * wrapper of libtdt passes the runtime's own wakers on, and does not see their wake-ups.
 *
 * Make the call before the task becomes runnable, so that it comes before the poll that the wake-up
 * leads to.  Make it for each wake-up, also if the task is runnable already: it may have been woken
 * only to answer a request, which ends no wait, and then this wake-up is the one that counts.
 *
 * The call fires the probe task-wake.  It also stores two facts in the task's record: the time, and
 * the task that is being polled on the calling thread, which is the task that made the wake-up.
 * Nothing is stored if the task is woken only to answer a request.  Of several wake-ups before the
 * task is polled again, the first one counts: the others do nothing.
 *
 * A dump uses these reports when it decides whether a ring of tasks is a deadlock: a task that was
 * woken may be about to go on.  With TDT_WORKER_ALL_WAKES they also tell which wake-ups were lost;
 * make the call for tasks that have ended, too, then.  NULL does nothing.  Any thread.
 */
void tdt_task_woken(struct tdt_handle *handle);

/* --- Tasks that the library does not wrap --------------------------------------------- */

/*
 * Report what happens to a task that need not be traced: it was spawned, a poll of it begins, that
 * poll is over, it has ended.  The reports fire the probes task-spawn, task-poll-start,
 * task-poll-end and task-terminate, the flight recorder records the task (tdt/recorder.h), and the
 * task has a record: it is listed, counted and dumped as every task is.  While it waits it has no
 * tree, which is said of it; the stack of a poll that lasts is read.  These calls are for a runtime
 * that has hooks, as tokio has: the hooks see every task, also those that nobody traces.
 *
 *	static void before_poll(const struct my_task *task)
 *	{
 *		tdt_hook_poll_start(&(struct tdt_task_attr){ .size = sizeof(struct tdt_task_attr),
 *							     .id = task->id, .file = task->file,
 *							     .line = task->line });
 *	}
 *
 * `attr` describes the task, in the same way each time.  The call reads it before it returns, and
 * keeps nothing of it.  (A file whose length is given is copied once: struct tdt_task_attr.)  The
 * runtime's ids are not 0, and no two tasks have the same.  The runtime calls tdt_task_id_base()
 * first, so that the library picks none of them for a traced task.
 *
 * tdt_hook_poll_start() and tdt_hook_poll_end() are called on the thread that polls, and so is
 * tdt_hook_terminate() in the poll that ends the task.  In between tdt_current_task_id() is the
 * task's id, unless a traced task is polled, and the task is what a polled one is: it is the parent
 * of the tasks that are made, and tdt_leaf_waits_on() notes what it waits for.  (The recorder takes
 * a poll that is reported inside another one for the only one.)  A task that ended in its poll is
 * ready, or has panicked, if TDT_ATTR_PANICKED is in the `flags` of tdt_hook_terminate(); any other
 * was dropped.
 *
 * The frames of the poll's functions lie below `base`, an address in the frame of the function that
 * polls.  tdt_hook_poll_start() takes the end of its caller's frame for it, so the function that
 * calls it is to be the one that polls; a wrapper around it calls tdt_hook_poll_start_at().
 *
 * If the task is a traced one as well, see tdt_hook_adopt(): it has one record, and each probe
 * fires once.
 *
 * Cost: while no tracer is attached and the recorder does not run, the two calls around a poll take
 * some 13 ns, of which 5 are the coarse clock's (tdt_worker_now()).  Without memory for a record
 * the task has none until its next poll.  NULL, or an id of 0, does nothing.  The first
 * tdt_hook_spawn() starts the library, as tdt_traced_with() does.  Any thread; not in a signal
 * handler.
 */
void tdt_hook_spawn(const struct tdt_task_attr *attr);
void tdt_hook_poll_start(const struct tdt_task_attr *attr);
void tdt_hook_poll_start_at(const struct tdt_task_attr *attr, uintptr_t base);
void tdt_hook_poll_end(const struct tdt_task_attr *attr);
void tdt_hook_terminate(const struct tdt_task_attr *attr);

/*
 * Give a traced task the id of the runtime's task that it is.  The task was made with `id_later` in
 * its attributes: until this call it has an id that the library picked, and task-spawn has not
 * fired.
 *
 *	struct tdt_traced traced = tdt_traced_with(fut, TDT_TASK_ATTR(.id_later = 1));
 *	struct my_task *task = my_task_new(traced.future);
 *	...
 *	tdt_hook_adopt(traced.handle, task->id);
 *	tdt_hook_spawn(&attr_of_task);
 *
 * From then on, what the runtime reports of its task (tdt_hook_poll_start()) is also said of this
 * one: the reports fire the probes of these polls, and of the end in such a poll.  Traces and the
 * recording have what the library knows of a traced task.  If the traced one ends first, the
 * runtime's task has a record of its own again from its next poll on.
 *
 * If `id` is 0, the task is none of the runtime's: it keeps its id, and task-spawn fires.
 *
 * Call it before the first poll, or at its beginning, on the thread that polls.  NULL does nothing.
 */
void tdt_hook_adopt(struct tdt_handle *handle, uint64_t id);

/* --- Wakers and leaves ---------------------------------------------------------------- */

/*
 * Return the runtime's own waker that `waker` stands for, or `waker` itself if it is the runtime's
 * own already.  This call is for the author of a runtime, or of a leaf that belongs to a runtime,
 * whose code looks into a waker (compares its vtable, or takes the task out of it).
 *
 * In a poll that was made for a request (tdt_backtrace(), a dump), a leaf borrows a waker of
 * libtdt.  The clones of that waker are *counted clones*, which are wakers of libtdt too.  A
 * counted clone forwards to a clone of the runtime's waker.  If a leaf holds no counted clone when
 * the poll is over, the library concludes that the leaf no longer waits.  A leaf that takes the
 * task out of its waker and then drops its clone looks like such a leaf: if it waits beside other
 * leaves, it is missing from the trace.  A program that has such a leaf turns counted clones off
 * with tdt_leaf_wakers(false).
 *
 * The result is borrowed from `waker`, and is valid as long as `waker` is.  Returns NULL if `waker`
 * is NULL, or if it was borrowed for a poll that is over.  Any thread; async-signal-safe.
 */
const struct tdt_waker *tdt_waker_beneath(const struct tdt_waker *waker);

/*
 * Report what the leaf that is being polled waits for.  The author of a leaf makes this call once
 * in each poll that is about to return TDT_PENDING, on the thread that polls.  The report belongs
 * to the innermost traced task, and is kept until the next poll of that task.  Traces and dumps
 * show it.  A dump names a ring of tasks that wait for each other if every leaf of each of these
 * tasks has made its report.
 *
 * `object` distinguishes one object from others of its kind: it is the object's address, a
 * descriptor (cast to a pointer), or, for TDT_WAIT_TASK, the handle.  `owner` is the id of the task
 * that the leaf depends on: the task that holds the mutex, or the awaited task.  It is 0 if there
 * is none, or if it is unknown.  The call makes a few stores.  Outside of polls it does nothing.
 *
 * A mutex stores the id of the task that takes it, and reports that id for each task that has to
 * wait:
 *
 *	static tdt_poll_t lock_poll(void *state, struct tdt_context *cx)
 *	{
 *		struct locking *locking = state;
 *		struct mutex *mutex = locking->mutex;
 *
 *		locking->task = tdt_current_task_id();          // 0 outside of tasks
 *		if (take(mutex)) {
 *			mutex->holder = locking->task;
 *			return TDT_READY;
 *		}
 *		wait_in_line(mutex, locking, cx->waker);
 *		tdt_leaf_waits_on(TDT_WAIT_MUTEX, mutex, mutex->holder);
 *		return TDT_PENDING;
 *	}
 *
 * A mutex that is handed over to the first waiter sets `holder` to the `task` of that waiter.  A
 * mutex that no task holds sets it to 0.  The remaining waiters report the new holder at their next
 * poll; a request for a backtrace leads to such a poll.  A task that does not answer a request has
 * only its old report.  A lock that begins with a struct tdt_lock lets a dump see whether that
 * report is still true, and its waiters report with tdt_leaf_waits_on_lock().
 *
 * Two kinds of futures make no report: a leaf that only lets other tasks run first, because it
 * waits for nothing; and a future that polls other futures, because those make their own reports.
 */
void tdt_leaf_waits_on(enum tdt_wait_kind kind, const void *object, uint64_t owner);

/*
 * The same for an object that has a name, as the user of the leaf knows it ("room 1").  Traces and
 * dumps show the name with the object.
 *
 *	tdt_leaf_waits_on_named(TDT_WAIT_MUTEX, mutex, mutex->holder, mutex->name);
 *
 * `name` ends with NUL; NULL: the object has no name.  It belongs to the caller, and must stay as
 * it is until the task is polled again or ends.  Only its address is noted, unless the poll is
 * captured: a copy has at most TDT_WAIT_NAME_MAX bytes.
 */
void tdt_leaf_waits_on_named(enum tdt_wait_kind kind, const void *object, uint64_t owner,
			     const char *name);

/*
 * The beginning of a lock, if its author wants dumps to find deadlocks among tasks that do not
 * answer, and futurelocks.  The library reads it at the address `object` of a TDT_WAIT_MUTEX, with
 * the help of the kernel, so that the lock may be freed at any time.
 *
 *	struct mutex {
 *		struct tdt_lock head;           // = { .magic = TDT_LOCK_MAGIC }
 *		...
 *
 * Whoever changes the owner does so before a waiter can learn of the change: with the two calls
 * below, or, when the lock is given up, with an atomic store of 0 to `owner` (relaxed).
 */
struct tdt_lock {
	char magic[8];   /* TDT_LOCK_MAGIC */
	uint64_t owner;  /* the id of the task that holds the lock now, or that it was handed to;
			    0: none */
	uint64_t handed; /* when the lock was handed to `owner`, which has not taken it
			    (CLOCK_MONOTONIC in nanoseconds); 0: `owner` has taken it */
	uint64_t taken_at; /* the return address of the call in the user's code that took the lock
			      last, which a dump shows of an orphaned lock; 0: unknown.  The code
			      of the lock stores it, if it wants to.  TDT_LOCK_MOVES: another task
			      than the owner may give the lock back, as with guards that move, so
			      the lock is never called orphaned */
};

#define TDT_LOCK_MAGIC "tdtlock"
#define TDT_LOCK_MOVES UINT64_MAX

/*
 * Report that the task with the id `task` holds `lock` from now on (0: it was taken outside of
 * tasks).
 *
 * tdt_lock_hand() reports that the lock was handed to a future of that task, which was woken, or is
 * about to be woken, and will hold the lock when it is polled next.  If the task never polls this
 * future, the lock is held by nobody, and all that wait for it hang: this is a *futurelock*.  Dumps
 * tell it from the moment between a wake-up and the poll: they find one if the lock was handed
 * over a tenth of a second before the dump, the task was polled for the dump, and the lock is still
 * not taken (docs/hang.md).
 *
 *	static void unlock(struct mutex *mutex)                 // under the mutex's own lock
 *	{
 *		struct locking *first = take_out_first(mutex);
 *
 *		if (first != NULL)
 *			tdt_lock_hand(&mutex->head, first->task);
 *		else
 *			tdt_lock_take(&mutex->head, 0);
 *		...
 *	}
 *
 * Both calls are made by the code of the lock, one at a time for each lock.  tdt_lock_take() makes
 * two stores and counts the locks of the two tasks; tdt_lock_hand() also reads the clock, about 30
 * ns, and is an event of the flight recorder.  Any thread.
 */
void tdt_lock_take(struct tdt_lock *lock, uint64_t task);
void tdt_lock_hand(struct tdt_lock *lock, uint64_t task);

/*
 * A lock is *orphaned* if its owner has ended and has not given it back: then all that wait for it
 * hang.  Dumps find this by looking for the owner first, and reading the lock again after that.  So
 * a holder that passes the lock on to another task (a guard that moves) reports the new one with
 * tdt_lock_take().
 */

/*
 * Report that the leaf that is being polled waits for `lock`, as tdt_leaf_waits_on_named() does for
 * a TDT_WAIT_MUTEX whose owner is that of the lock now.  A trace then also shows if the lock was
 * handed to the owner, which has not taken it.  `lock` must be valid during the call; `name` is as
 * there, and may be NULL.
 */
void tdt_leaf_waits_on_lock(const struct tdt_lock *lock, const char *name);

/*
 * Report the time: CLOCK_MONOTONIC in nanoseconds.  One call in each turn of the worker's loop
 * serves all polls of that turn on this thread: the polls use this time as their time stamp.  A
 * runtime that knows the time anyway pays nothing for this.  On a thread that never makes this
 * call, or whose last call was with 0, each poll reads the coarse clock, about 7 ns.  A thread that
 * stops reporting the time must call this function with 0; otherwise the time stamps of its tasks
 * stand still.
 */
void tdt_worker_now(uint64_t monotonic_ns);

/*
 * Return memory of TDT_HANDLE_ROOM bytes for the runtime's own task, beside the record of `handle`
 * and aligned for pointers, so that a runtime need not allocate it.  There is one such room for
 * each traced task.  It belongs to the runtime that polls the task for as long as that holds a
 * reference of the handle, or the future.  What lies in it at first is of any value.  NULL gives
 * NULL.  Any thread.
 */
#define TDT_HANDLE_ROOM 104
void *tdt_handle_room(struct tdt_handle *handle);

/*
 * Move the ids that the library picks to `first` and above.  This call is for a runtime that has
 * task ids of its own, and gives one to every task.  Tasks that have an id keep it.  Returns 0, or
 * -EINVAL and sets errno if `first` is 0, or is below an id that was already picked.  Any thread.
 */
int tdt_task_id_base(uint64_t first);

TDT_DECLS_END

#endif
