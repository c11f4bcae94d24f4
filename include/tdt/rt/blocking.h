/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_BLOCKING_H
#define TDT_BLOCKING_H /* may change: docs/compatibility.md */

/*
 * Functions that block (files, a database), called on threads of their own, so that they keep no
 * worker of libtdt-rt.
 *
 *	static void write_back(void *arg)                       // on a blocking thread
 *	{
 *		struct page *page = arg;
 *
 *		page->error = fsync(page->fd) == 0 ? 0 : -errno;
 *	}
 *	...
 *	TDT_AWAIT(tdt_spawn_blocking(write_back, it->page, page_free));
 *	if (it->page->error != 0)                               // ours again
 *		...
 *
 * A job is a task without a future (tdt_task_new() in tdt/integrate/leaf.h), named by its function.
 * Dumps show it as any other: waiting for a thread, or "running for 3.2 s on blocking thread 4711,
 * in fsync()", with the stack of that thread.  What awaits it waits for that task.
 */

#include <tdt/decls.h>
#include <tdt/future.h>

TDT_DECLS_BEGIN

/*
 * Make a future that has job(arg) called on a blocking thread, from its first poll on, and is ready
 * when the call has returned.  A runtime has at most 128 of these threads; they start when jobs
 * have to wait, with the signal mask of the thread that polls, and end after 10 s without a job.
 * In the job tdt_rt_current() is the runtime, and tdt_rt_block_on() and tdt_rt_free() give EDEADLK.
 *
 * The future takes `arg` over.  When it is ready, `arg` is the caller's again, with what the job
 * has written there.  Dropping the future before does not stop a job that runs: then
 * `arg_free(arg)` is called when it has returned, on its thread.  A job that does not run yet never
 * will, and `arg` is freed at once.  `arg_free` may be NULL: then nothing is freed, and `arg` must
 * outlive the job.
 *
 * The future ends as TDT_PANICKED, and sets errno, if the job exits or is cancelled as a thread, if
 * tdt_rt_free() comes before it, or if no thread is left for it (ECANCELED); if no runtime is on
 * the thread that polls, or tdt_rt_free() has begun (ENOTSUP); or if there is no blocking thread,
 * and none can be started (EAGAIN, ENOMEM).  Then `arg` is freed with the future.  tdt_rt_free()
 * waits for jobs that run.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`job` is NULL), ENOMEM.  Then `arg` still belongs
 * to the caller.
 */
TDT_MUST_USE
struct tdt_future tdt_spawn_blocking(void (*job)(void *arg), void *arg,
				     void (*arg_free)(void *arg));

TDT_DECLS_END

#endif
