/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RUNTIME_H
#define TDT_RUNTIME_H

/*
 * libtdt-rt: a multi-threaded runtime for futures, small enough to embed, whose every task is traced.
 *
 *	struct tdt_rt *rt = tdt_rt_new(NULL);
 *	struct tdt_handle *server = tdt_rt_spawn(rt, serve(listener), TDT_TASK_ATTR(.name = "server"));
 *	...
 *	struct tdt_trace *trace = tdt_backtrace(server);        // tdt/trace.h; any thread but a worker
 *	...
 *	tdt_handle_unref(server);
 *	tdt_rt_free(rt);
 *
 * Or, for a program that is one task: tdt_rt_block_on(rt, serve(listener)).
 *
 * It is a library of its own (`pkg-config tdt-rt`, -ltdt-rt) beside libtdt, which needs no runtime of ours.  The
 * sockets are in tdt/net.h, what tasks share with each other in tdt/sync.h; tdt_join() in tdt/join.h awaits a task.
 *
 * How it works: each worker thread has a queue of its own, and when it is empty takes from the common one, then steals
 * from another worker's.  A worker with nothing to do sleeps in the kernel; whoever makes a task runnable wakes one if
 * none is looking for work already.  But a task that is woken in a poll, when nothing else is runnable on that worker,
 * is left to the worker, which polls it next; should that poll go on, or block, another worker takes the task within
 * some 10 ms: while there is work, one idle worker looks around that often.
 *
 * One more thread, the driver, waits for timers and sockets (libuv) and wakes tasks: it is none of the workers, so that
 * a task that blocks its worker holds up no other task's timer.  While nothing is due, no thread wakes.
 *
 * A task is woken however often, and polled once: wakers are the task's reference count, and a clone is the waker
 * itself.  Workers tell libtdt of their start, stop, park and unpark, of the time (once a turn of at most 32 polls) and
 * of wake-ups (tdt/hooks.h), so all probes fire.
 *
 * In a child of fork() there are no workers: a runtime made before is of no use there, and is not freed.  To wake a
 * task of it does nothing, so that a dump can be taken there, too.
 */

#include <stdbool.h>

#include <tdt/future.h>
#include <tdt/trace.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct tdt_rt; /* a runtime: its workers, its driver, its tasks */

/* Choices for tdt_rt_new().  `size` is sizeof(struct tdt_rt_config), by the rules of struct tdt_task_attr. */
struct tdt_rt_config {
	size_t size;
	unsigned workers; /* threads that poll tasks, TDT_RT_MAX_WORKERS at most; 0: one a core this thread may run on */
};

#define TDT_RT_MAX_WORKERS 1024

/*
 * Make a runtime, and start its threads.  `config` may be NULL: the defaults.
 *
 * The workers have the caller's signal mask.  The driver has all signals blocked but those of faults of its own.
 *
 * Returns NULL and errno: EINVAL (config->size is 0; more than TDT_RT_MAX_WORKERS workers), E2BIG (config is of a newer
 * library), ENOMEM, EAGAIN (a thread could not be started), EMFILE, ENFILE (no descriptor for the driver).  Any thread.
 *
 * (libuv 1.44 ends the process by abort() if its table of descriptors can't grow.  The driver first looks whether there
 * is memory for that, and fails with ENOMEM; only if another thread takes the memory just then, libuv finds none.)
 */
struct tdt_rt *tdt_rt_new(const struct tdt_rt_config *config);

/*
 * The runtime of this thread: on a worker, and in tdt_rt_block_on().  NULL elsewhere.  Borrowed.  So a task spawns
 * others: tdt_rt_spawn(tdt_rt_current(), ...).
 */
struct tdt_rt *tdt_rt_current(void);

/*
 * Spawn `fut` as a task of its own, which the workers poll until it has ended, and drop then.  The runtime takes `fut`
 * over and traces it (tdt_traced_with()), unless it is a traced future already, whose `attr` counts then.
 *
 * `attr` may be NULL; TDT_TASK_ATTR() notes the place of the call, TDT_TASK_ATTR(.name = "x") a name too (in
 * C++ TDT_TASK_ATTR("x")).
 *
 * Returns the task's handle, for the caller to give back with tdt_handle_unref(), at once if it isn't needed: that
 * never cancels the task.  Or NULL and errno, and `fut` stays the caller's: EINVAL (`rt` is NULL, `fut` is none or has
 * no drop, attr->size is 0), E2BIG, ENOMEM, ESHUTDOWN (tdt_rt_free() has begun).
 *
 * A task that panics (TDT_PANICKED) has ended; the runtime goes on.  Any thread, also from inside tasks.
 */
struct tdt_handle *tdt_rt_spawn(struct tdt_rt *rt, struct tdt_future fut, const struct tdt_task_attr *attr);

/*
 * Poll `fut` on the calling thread until it has ended, and drop it.  The thread sleeps while `fut` waits.  The future
 * is traced, as a task named "block_on" (unless it is a traced one already); timers, sockets and spawning work in it.
 *
 * Returns 0 when it was ready, -ENOTRECOVERABLE when it panicked; the future is gone in both cases.  Other errors leave
 * it with the caller: -EINVAL (`rt` is NULL, `fut` is none or has no drop), -EDEADLK (called on a worker, or inside
 * another tdt_rt_block_on()), -ESHUTDOWN (tdt_rt_free() has begun), -ENOMEM.  Several threads may be in it at a time.
 */
int tdt_rt_block_on(struct tdt_rt *rt, struct tdt_future fut);

/*
 * End a runtime, and free it.  Workers finish the poll they are in and stop; then every task that has not ended is
 * dropped on the calling thread, in the order they were spawned; each terminates, and who asked for its backtrace gets
 * ESRCH.  Then the driver stops.  NULL does nothing.
 *
 * It waits for polls in progress, however long they take.  Nobody may be in tdt_rt_block_on(), or use `rt` afterwards.
 * Other threads may be in tdt_rt_spawn() when it begins, if they have returned from it before it has (the drop of a
 * task may wait for them): the task is dropped like the others, or by tdt_rt_spawn() itself, which has taken it over;
 * or the call says ESHUTDOWN.  Wakers and handles of its tasks, and sockets, may live on: to wake a task that is gone
 * does nothing.
 *
 * On a worker of `rt`, which would have to wait for itself, or in its tdt_rt_block_on(), it does nothing and sets errno
 * to EDEADLK.
 */
void tdt_rt_free(struct tdt_rt *rt);

/*
 * --- Futures ---------------------------------------------------------------
 *
 * The futures of this library (and of tdt/net.h) wait with the help of the runtime on whose thread they do so first: a
 * worker, or one in tdt_rt_block_on().  One that has to wait on another thread ends as TDT_PANICKED, and sets errno to
 * ENOTSUP in that poll; also after its runtime was freed, which wakes who waits.  Each returns TDT_FUTURE_NONE and errno
 * ENOMEM if there is no memory.
 */

/*
 * Ready when `ms` milliseconds have passed since its first poll, never earlier.  Timers are due at whole milliseconds;
 * those due at the same fire in the order they were started.  Dropping it cancels the timer, which takes no system
 * call; nor does starting one that is due later than another.
 */
struct tdt_future tdt_sleep_ms(uint64_t ms);

/* Pending once, and woken at once: lets every task go first that is runnable on this worker.  Any runtime. */
struct tdt_future tdt_yield_now(void);

/*
 * Ready when `fut` is, or when `ms` milliseconds have passed since its first poll.  `fut` is polled first, so when both
 * are due it wins; `ms` = 0 polls it once.  `*elapsed` (may be NULL; it must outlive the future, and is written only
 * from its poll) says which: true if time ran out; `fut` has been dropped then.  It panics if `fut` does.
 *
 * Takes `fut` over.  Returns TDT_FUTURE_NONE and errno, and `fut` stays the caller's, to be dropped: EINVAL (it is none
 * or has no drop), ENOMEM.  So who must not leak then makes `fut` in a statement of its own.
 */
struct tdt_future tdt_timeout(struct tdt_future fut, uint64_t ms, bool *elapsed);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
