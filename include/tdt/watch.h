/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_WATCH_H
#define TDT_WATCH_H

/*
 * Watching: have every task keep its last tree, so that it is there already when the process hangs, and in its core
 * file.  The tree is captured in a poll that happens anyway, at most once a task and interval; no task is woken for it.
 *
 * What a watched poll needs was made ready beforehand, by a thread of libtdt's; what is not there is gone without:
 *
 * - each task that waits has a tree from its first poll on, also in a burst of many: room for it is made when the task is
 *   spawned (or, for the tasks that are there already, in tdt_watch()).  If the trees of many tasks grow at once, some
 *   keep the tree before until the next interval; a first tree that is larger than those before it may be cut
 * - a tree has at most 512 frames; what is beyond is cut (TDT_CUT_LIMIT), leaves too many are counted as lost
 * - of code that was met for the first time only 8 frames are learned a poll, at some 6 us each and under a lock: a
 *   stack with more is cut (TDT_CUT_LIMIT), and goes further the next time
 *
 * And it is to take a CPU no more than some 0.5 % of its time, so there are 10,000 captures a second at most, beside one
 * of each task's first poll.  At 10 ms that does for 100 tasks.  Of more that are polled so often each keeps a tree as
 * much less often, 500 of them one in 50 ms; but of any number once a second.
 *
 * In the environment, TDT_WATCH=10ms does the same from the first traced future on (units: ns, us, ms, s; without one
 * ms; 0 and the empty string: off).  What it doesn't understand it ignores.
 */

#include <tdt/trace.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define TDT_WATCH_MIN_NS 1000000 /* 1 ms */

/*
 * Watch all tasks, once in `interval_ns` nanoseconds each (less than TDT_WATCH_MIN_NS counts as that; many tasks less
 * often, see above); 0: stop, and what was recorded stays.  The first call starts a thread, "tdt-watch", that sleeps but
 * for some instructions an interval, with all signals blocked.  Stopped, it sleeps on: it is never joined.  The first
 * interval begins at once.  A child of fork() is not watched until it says so itself.  Who has called this is not asked
 * for TDT_WATCH any more.
 *
 * Returns 0, or -EINVAL (negative), -ENOMEM or -EAGAIN (no thread), and sets errno.  Any thread.
 */
int tdt_watch(int64_t interval_ns);

/*
 * The task's last watched tree, without touching the task, whatever it does.  The trace's `age_ns` says how old the
 * tree is, `polls_since` how many polls have begun after it; state and its time are what they are now.  It is always of
 * a poll after which the task waited: one that has ended keeps the last of these as long as there is a handle.  If
 * modules were unloaded since, its frames are marked as guessed.
 *
 * Returns a trace, for the caller to free with tdt_trace_free(); or NULL and errno: ENODATA (the task was not watched
 * yet), EINVAL (`handle` is NULL), ENOMEM.  Any thread, also inside polls.
 */
struct tdt_trace *tdt_backtrace_last(struct tdt_handle *handle);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
