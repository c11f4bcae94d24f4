/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_COMBINE_H
#define TDT_COMBINE_H

/*
 * Futures made of futures.  Children are polled with the waker the combinator was polled with, in order, every one that
 * has not ended, so that each leaf below is seen by a backtrace.
 */

#include <tdt/future.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/*
 * A future that is ready when all `n` futures are.  It takes the futures over and copies the array.  A child that has
 * ended is dropped at once, and not polled again.  If a child panics the rest is dropped unpolled and the answer is
 * TDT_PANICKED.  `n` = 0 is ready at the first poll.
 *
 * Returns TDT_FUTURE_NONE and errno: EINVAL (`futures` is NULL while `n` isn't 0, or one of them is TDT_FUTURE_NONE or
 * has no drop), ENOMEM.  The futures stay the caller's then, to be dropped (tdt_future_drop() of one that is none does
 * nothing):
 *
 *	struct tdt_future both[] = { read_some(fd), timer(1000) }, joined = tdt_join_all(both, 2);
 *
 *	if (tdt_future_is_none(&joined)) {
 *		tdt_future_drop(&both[0]);
 *		tdt_future_drop(&both[1]);
 *	}
 */
struct tdt_future tdt_join_all(const struct tdt_future *futures, size_t n);

/*
 * A future that is ready when the first of `n` futures is.  Its index is then in `*winner` (may be NULL; it must
 * outlive the future, and is written only from its poll).  Children are polled in order, so the first in the array wins
 * a tie; the losers are dropped before the poll returns.  If a child panics before one is ready, the rest is dropped
 * and the answer is TDT_PANICKED (`*winner` is not written).
 *
 * Errors as tdt_join_all(), and EINVAL for `n` = 0, which could never be ready.
 */
struct tdt_future tdt_select(const struct tdt_future *futures, size_t n, size_t *winner);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
