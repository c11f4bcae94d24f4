/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_H
#define TDT_RUNTIME_H /* may change: docs/compatibility.md */

/*
 * libtdt-rt: a multi-threaded runtime for futures.  It is small enough to embed, and traces every
 * task.
 *
 *	struct tdt_rt *rt = tdt_rt_new(NULL);
 *	struct tdt_handle *server = tdt_rt_spawn(rt, serve(listener),
 *						 TDT_TASK_ATTR(.name = "server"));
 *	...
 *	struct tdt_trace *trace = tdt_backtrace(server);   // tdt/trace.h; any thread but a worker
 *	...
 *	tdt_handle_unref(server);
 *	tdt_rt_free(rt);
 *
 * A program that consists of one task can call tdt_rt_block_on(rt, serve(listener)) instead.
 *
 * The runtime is a library of its own (`pkg-config tdt-rt`, -ltdt-rt) beside libtdt. libtdt does
 * not need it.  Sockets are in tdt/rt/net.h.  Objects that tasks share are in tdt/rt/sync.h.
 * tdt_join() in tdt/join.h awaits a task.
 *
 * How it works: each worker thread has a queue of its own.  A worker whose queue is empty takes
 * tasks from the common queue, then steals from another worker, and then sleeps in the kernel.  A
 * thread that makes a task runnable wakes a sleeping worker, unless some worker looks for work
 * already; or unless a poll on a worker wakes the task, and this worker has no other: then it polls
 * the task next, and another worker takes the task only if the present poll goes on for some
 * milliseconds.
 *
 * One idle worker waits for timers and sockets, and polls the tasks that these wake.  A thread that
 * polls no tasks, the watchdog ("tdt-driver"), looks every 2 ms, while any worker is busy, whether
 * another worker should take over tasks or events.  While all workers are in long polls, it waits
 * for timers and sockets itself.  So a task that blocks its worker hardly delays the timers of
 * other tasks.  While nothing is due, no thread wakes up.
 *
 * Several wake-ups of a task before its next poll lead to one poll.  A clone of a waker is the
 * waker itself, and counts a reference of the task.  Workers make all reports of
 * tdt/integrate/hooks.h, and the time once in at most 32 polls.  Therefore all probes fire.
 *
 * A child of fork() has no workers.  Calls that get a runtime from before the fork fail there:
 * ESHUTDOWN, and EDEADLK from tdt_rt_free().  Waking a task of that runtime does nothing, so a dump
 * can be taken in the child too.
 */

#include <stdbool.h>

#include <tdt/decls.h>
#include <tdt/future.h>
#include <tdt/trace.h>

TDT_DECLS_BEGIN

struct tdt_rt; /* a runtime: its workers, its driver, its tasks */

/*
 * Options for tdt_rt_new().  `size` is sizeof(struct tdt_rt_config), with the rules of struct
 * tdt_task_attr.
 */
struct tdt_rt_config {
	size_t size;
	unsigned workers; /* the number of threads that poll tasks, at most TDT_RT_MAX_WORKERS; 0:
			     one for each core that the calling thread may run on */
	unsigned reserved;
};

#define TDT_RT_MAX_WORKERS 1024

/*
 * Make a runtime, and start its threads.  `config` may be NULL: that means the defaults.  The
 * caller frees the runtime with tdt_rt_free().
 *
 * The workers have the caller's signal mask.  The watchdog blocks all signals, except those that
 * report faults of its own.
 *
 * The process then listens for readers outside, such as tdt(1), as after tdt_listen()
 * (tdt/layout/outside.h); with TDT_OUTSIDE=0 in the environment it does not.
 *
 * Returns NULL and sets errno on failure: EINVAL (config->size is 0, or there are more than
 * TDT_RT_MAX_WORKERS workers), E2BIG (config is of a newer library), ENOMEM, EAGAIN (a thread could
 * not be started), EMFILE or ENFILE (it needs three descriptors).  Any thread.
 */
TDT_MUST_USE
struct tdt_rt *tdt_rt_new(const struct tdt_rt_config *config);

/*
 * Return the runtime of the calling thread: of a worker, of a thread in tdt_rt_block_on(), or of a
 * job (tdt/rt/blocking.h).  Returns NULL on any other thread.  The result is borrowed.  A task
 * spawns other tasks with it: tdt_rt_spawn(tdt_rt_current(), ...).
 */
struct tdt_rt *tdt_rt_current(void);

/*
 * Spawn `fut` as a task.  The workers poll the task until it has ended, and then drop it.  The
 * runtime takes `fut` over and traces it (tdt_traced_with()).  If `fut` is a traced future already,
 * it is not wrapped again, and the attributes that it was traced with apply.
 *
 * `attr` may be NULL.  TDT_TASK_ATTR() records the place of the call.  TDT_TASK_ATTR(.name = "x")
 * also records a name (in C++ before C++20: TDT_TASK_ATTR("x")).
 *
 * Returns the task's handle.  The caller unrefs it with tdt_handle_unref(), at once if it is not
 * needed; this never cancels the task.  On failure the call returns NULL and sets errno, and `fut`
 * still belongs to the caller: EINVAL (`rt` is NULL, `fut` is none or has no drop, or attr->size is
 * 0), E2BIG, ENOMEM, ESHUTDOWN (tdt_rt_free() has begun).
 *
 * A task that panics (TDT_PANICKED) has ended; the runtime continues.  Any thread, also inside
 * tasks.
 */
TDT_MUST_USE
struct tdt_handle *tdt_rt_spawn(struct tdt_rt *rt, struct tdt_future fut,
				const struct tdt_task_attr *attr);

/*
 * Spawn `fut` as a task whose handle nobody needs.  The call takes `fut` over, also if it fails, so
 * that one line leaks nothing:
 *
 *	if (tdt_rt_go(rt, serve(tcp), TDT_TASK_ATTR(.name = "request")) != 0)
 *		...                                     // serve()'s future, if any, was dropped
 *
 * Returns 0, or a negative errno and sets errno: as tdt_rt_spawn(), and -EINVAL if `fut` is none.
 * Any thread, also inside tasks.
 */
int tdt_rt_go(struct tdt_rt *rt, struct tdt_future fut, const struct tdt_task_attr *attr);

/*
 * Poll `fut` on the calling thread until it has ended, and drop it.  The thread sleeps while `fut`
 * waits.  The future is traced as a task named "block_on", unless it is a traced future already.
 * It may use timers and sockets, and may spawn tasks.
 *
 * Returns 0 if the future was ready, or -ENOTRECOVERABLE if it panicked; in both cases it has been
 * dropped.  After any other error the future still belongs to the caller: -EINVAL (`rt` is NULL, or
 * `fut` is none or has no drop), -EDEADLK (the caller is on a worker, in a job, or inside another
 * tdt_rt_block_on()), -ESHUTDOWN (tdt_rt_free() has begun), -ENOMEM.  With each error, errno is set
 * too.  Several threads may be in this call at a time.  The thread is a worker during the call
 * (tdt/integrate/hooks.h), and none after it, also if it was another runtime's worker before.
 */
int tdt_rt_block_on(struct tdt_rt *rt, struct tdt_future fut);

/*
 * Stop a runtime, and free it.  First each worker finishes the poll that it is in, and stops.  Then
 * each task that has not ended is dropped on the calling thread, in the order of the tasks' ids:
 * that of their spawning, if the library picked the ids.  Each of these tasks terminates, and a
 * requester that waits for its backtrace gets ESRCH.  Then jobs that run are waited for
 * (tdt/rt/blocking.h), and the watchdog stops.  NULL does nothing.
 *
 * The call waits for polls and jobs in progress, however long they take.  No thread may be in
 * tdt_rt_block_on() during the call, and none may use `rt` after it.
 *
 * Other threads may be in tdt_rt_spawn() when the call begins, if they return from it before this
 * call returns (the drop of a task may wait for them).  Then the new task is dropped as the others
 * are, or by tdt_rt_spawn() itself, which has taken the future over; or tdt_rt_spawn() fails with
 * ESHUTDOWN.
 *
 * Wakers and handles of the runtime's tasks, sets of tasks, and sockets may outlive the runtime.
 * Waking a task that is gone does nothing.
 *
 * If it is called on a worker or in a job of `rt` (which would wait for itself), or in
 * tdt_rt_block_on() of `rt`, the call does nothing and sets errno to EDEADLK.
 */
void tdt_rt_free(struct tdt_rt *rt);

/*
 * --- Futures ---------------------------------------------------------------
 *
 * The futures of this library (here and in tdt/rt/net.h) wait with the help of a runtime: the
 * runtime of the thread on which they first have to wait.  This thread is a worker, or is in
 * tdt_rt_block_on().  If such a future has to wait on any other thread, it ends as TDT_PANICKED,
 * and sets errno to ENOTSUP in that poll.  The same happens to a future that waits when its runtime
 * is freed: its task is woken, and the future ends so.  A waker that is not of libtdt-rt may be
 * called on a worker: it must not wait for a task of this runtime.  Each call below returns
 * TDT_FUTURE_NONE and sets errno to ENOMEM if there is no memory.
 */

/*
 * Make a future that is ready when `ms` milliseconds have passed since its first poll, and never
 * earlier.  Timers are due at whole milliseconds.  Timers that are due at the same millisecond fire
 * in the order in which they were started.  Dropping the future cancels the timer.  That takes no
 * system call, and neither does starting a timer that is due later than another one.
 */
TDT_MUST_USE
struct tdt_future tdt_sleep_ms(uint64_t ms);

/*
 * Make a future that waits until one of `signals`, numbers that a 0 ends, comes to the process, and
 * takes it.  `*signal` is then its number, or a negative errno if the future could not wait.  Block
 * the signals in all threads, mostly by pthread_sigmask(3) before the runtime is made: otherwise
 * their handlers run, or they end the process.  Of two futures for one signal one gets it.
 *
 *	TDT_AWAIT(tdt_signal_wait((const int[]){ SIGINT, SIGTERM, 0 }, &server->signal));
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (a pointer is NULL, there is no number, or one is
 * no signal's, or that of SIGKILL or SIGSTOP), EMFILE, ENFILE, ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_signal_wait(const int *signals, int *signal);

/*
 * Make a future that is pending once, and wakes its task at once.  Thus every other task that is
 * runnable on this worker runs first.  Works on any runtime.
 */
TDT_MUST_USE
struct tdt_future tdt_yield_now(void);

/*
 * Make a future that is ready when `fut` is ready, or when `ms` milliseconds have passed since its
 * first poll.  Each poll polls `fut` first, so `fut` wins if both are due.  `ms` = 0 polls `fut`
 * once.
 *
 * `*elapsed` reports which of the two happened: true if the time ran out.  `fut` has been dropped
 * then.  `elapsed` may be NULL.  Otherwise it must outlive the future; only the future's poll
 * writes `*elapsed`.  If `fut` panics, so does the future.
 *
 * The call takes `fut` over.  On failure it returns TDT_FUTURE_NONE and sets errno, and `fut` still
 * belongs to the caller, who drops it: EINVAL (`fut` is none or has no drop), ENOMEM.  To be able
 * to drop `fut` after a failure, make it in a statement of its own.
 */
TDT_MUST_USE
struct tdt_future tdt_timeout_ms(struct tdt_future fut, uint64_t ms, bool *elapsed);

TDT_DECLS_END

#endif
