/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_COMBINE_H
#define TDT_COMBINE_H /* stable from 1.0: docs/compatibility.md */

/*
 * Futures made of futures: join and select.  Such a combinator polls its children in order, with
 * the waker that it was polled with itself.  Each of its polls polls every child that has not
 * ended.  Thus a backtrace sees each leaf below the combinator.
 */

#include <tdt/decls.h>
#include <tdt/future.h>

TDT_DECLS_BEGIN

/*
 * Make a future that is ready when all `n` futures are.  The call takes the futures over, and
 * copies the array.  A child that has ended is dropped at once, and is not polled again.  If a
 * child panics, the remaining children are dropped without a poll, and the result is TDT_PANICKED.
 * If `n` is 0, the future is ready at its first poll.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`futures` is NULL while `n` is not 0; or one of
 * the futures is TDT_FUTURE_NONE or has no drop), ENOMEM.  Then the futures still belong to the
 * caller, who drops them.  (tdt_future_drop() of a TDT_FUTURE_NONE among them does nothing.)
 *
 *	struct tdt_future both[] = { read_some(fd), timer(1000) }, joined = tdt_join_all(both, 2);
 *
 *	if (tdt_future_is_none(&joined)) {
 *		tdt_future_drop(&both[0]);
 *		tdt_future_drop(&both[1]);
 *	}
 *
 * Any thread.
 */
TDT_MUST_USE
struct tdt_future tdt_join_all(const struct tdt_future *futures, size_t n);

/*
 * Make a future that is ready when the first of `n` futures is.  `*winner` is then the index of
 * that future.  `winner` may be NULL.  Otherwise it must outlive the future; only the future's poll
 * writes `*winner`.  Children are polled in order, so if several are ready in one poll, the first
 * of them in the array wins.  The other children are dropped before the poll returns.  What they
 * waited for (a mutex, a connection, the receiver of a channel) still belongs to the caller, who
 * can make new futures of it; or see tdt_select_keep().  If a child panics before one is ready, the
 * remaining children are dropped, the result is TDT_PANICKED, and `*winner` is not written.
 *
 * Returns TDT_FUTURE_NONE and sets errno as tdt_join_all() does.  `n` = 0 gives EINVAL, because
 * such a future could never be ready.  Any thread.
 */
TDT_MUST_USE
struct tdt_future tdt_select(const struct tdt_future *futures, size_t n, size_t *winner);

/*
 * The same, but the futures stay in the caller's array, and stay the caller's: those that have not
 * won go on in the next select.  The one that has won is dropped, and is TDT_FUTURE_NONE from then
 * on.  So "work or stop" is three lines, in a loop, with both futures in the state:
 *
 *	if (tdt_future_is_none(&server->either[0]))
 *		server->either[0] = work(server);
 *	TDT_AWAIT(tdt_select_keep(server->either, 2, &server->winner));
 *
 * A child that is TDT_FUTURE_NONE is left out.  If a child panics, it is dropped, `*winner` is its
 * index, and the result is TDT_PANICKED, as it is if all children are TDT_FUTURE_NONE.  The array
 * must outlive the future.  Dropping the future drops no child: the caller's `fini` does.
 *
 * Returns TDT_FUTURE_NONE and sets errno: EINVAL (`futures` is NULL, or `n` is 0), ENOMEM.  Any
 * thread.
 */
TDT_MUST_USE
struct tdt_future tdt_select_keep(struct tdt_future *futures, size_t n, size_t *winner);

TDT_DECLS_END

#endif
