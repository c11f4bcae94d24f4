/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_JOIN_SET_H
#define TDT_JOIN_SET_H /* may change: docs/compatibility.md */

/*
 * A set of tasks on libtdt-rt (tdt/rt/runtime.h), to wait for any of them, for all, or to abort
 * them.  A server that serves each connection in a task of its own, and stops in order:
 *
 *	tdt_join_set_forget(server->requests);                          // once: see there
 *	...
 *	tdt_join_set_go(server->requests, serve(tcp), TDT_TASK_ATTR(.name = "request"));
 *	...
 *	server->drain = tdt_join_set_wait(server->requests);            // after the last accept
 *	TDT_AWAIT(tdt_timeout_ms(server->drain, 10000, &server->late));
 *	if (server->late)
 *		tdt_join_set_abort(server->requests);
 *	TDT_AWAIT(tdt_join_set_wait(server->requests));                 // also of those aborted
 */

#include <tdt/decls.h>
#include <tdt/future.h>
#include <tdt/trace.h>

TDT_DECLS_BEGIN

struct tdt_rt;
struct tdt_join_set;

/*
 * Make a set of tasks of `rt`.  Returns NULL and sets errno: EINVAL (`rt` is NULL), ENOMEM.  Any
 * thread.
 */
TDT_MUST_USE
struct tdt_join_set *tdt_join_set_new(struct tdt_rt *rt);

/*
 * Give the set a name, which traces and dumps show where a task waits for it, as
 * tdt_mutex_set_name() does.
 */
int tdt_join_set_set_name(struct tdt_join_set *set, const char *name);

/*
 * Have the set forget each task that ends from now on.  Otherwise it keeps the outcome, and some
 * 600 bytes, of each until tdt_join_set_next() or tdt_join_set_wait() takes it out.  NULL does
 * nothing.  Any thread.
 */
void tdt_join_set_forget(struct tdt_join_set *set);

/*
 * Spawn `fut` into the set, as tdt_rt_go() does: the call takes `fut` over, also if it fails.
 * Returns 0, or a negative errno and sets errno, as there; -EINVAL also if `set` is NULL.  Any
 * thread, also inside tasks of the set.
 */
int tdt_join_set_go(struct tdt_join_set *set, struct tdt_future fut,
		    const struct tdt_task_attr *attr);

/*
 * Make a future that waits until a task of the set has ended, and takes that task out of the set;
 * or that is ready at once if the set has no task.  `*id` is then the task's id, or 0 if there was
 * none, and `*outcome` as of tdt_join(): 0, -ENOTRECOVERABLE or -ECANCELED.  Both may be NULL, or
 * must outlive the future; only the future's poll writes to them.  The task's future has been
 * dropped by then.  Tasks are taken in the order in which they ended.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`set` is NULL), ENOMEM.
 */
TDT_MUST_USE
struct tdt_future tdt_join_set_next(struct tdt_join_set *set, uint64_t *id, int *outcome);

/* The same until the set has no task; their outcomes are lost. */
TDT_MUST_USE
struct tdt_future tdt_join_set_wait(struct tdt_join_set *set);

/*
 * Abort all tasks that are in the set and have not ended (tdt_task_abort()).  Does not wait for
 * them.  NULL does nothing.  Any thread.
 */
void tdt_join_set_abort(struct tdt_join_set *set);

/*
 * Abort the tasks that have not ended, and give up the set.  No thread may use the set after that;
 * futures of it may be dropped later, and are ready.  NULL does nothing.
 */
void tdt_join_set_free(struct tdt_join_set *set);

TDT_DECLS_END

#endif
