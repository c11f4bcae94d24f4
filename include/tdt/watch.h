/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_WATCH_H
#define TDT_WATCH_H /* stable from 1.0: docs/compatibility.md */

/*
 * The watch: every task keeps its last tree.  The tree is then present already when the process
 * hangs, and it is in the core file.  It is captured in a poll that happens anyway, at most once in
 * an interval for each task.  The watch wakes no task.
 *
 * A thread of libtdt prepares the memory that a watched poll needs; the poll itself allocates none.
 * If something is not prepared, the poll does without it:
 *
 *   - Each task that waits has a tree from its first poll on, even in a burst of many tasks.  Room
 *     for the tree is made when the task is spawned (for tasks that exist already: in tdt_watch()).
 *     If the trees of many tasks grow at once, some of the tasks keep their previous tree until the
 *     next interval.  A first tree may be truncated if it is larger than the trees before it.
 *   - A tree has at most 512 frames.  Further frames are cut off (TDT_CUT_LIMIT), and leaves for
 *     which there is no room are counted as lost.
 *   - When a poll meets code for the first time, the library must learn how to step its frames.  A
 *     watched poll learns at most 8 frames, at about 6 us each, under a lock.  A stack with more
 *     new frames is truncated (TDT_CUT_LIMIT), and goes further the next time.
 *
 * The watch may take at most about 0.5 % of a CPU's time.  Therefore there are at most 10,000
 * captures a second, besides one capture of each task's first poll.  With an interval of 10 ms,
 * this is enough for 100 tasks.  If more tasks are polled that often, each is captured less often:
 * each of 500 tasks once in 50 ms.  But with any number of tasks, each is captured once a second.
 *
 * TDT_WATCH=10ms in the environment starts the watch at the first traced future.  The units are ns,
 * us, ms and s; a number without a unit is in ms. 0 and the empty string mean off.  Any other value
 * is ignored.  A set-user-ID program ignores TDT_WATCH.
 */

#include <tdt/decls.h>
#include <tdt/trace.h>

TDT_DECLS_BEGIN

#define TDT_WATCH_MIN_NS 1000000 /* 1 ms */

/* Options of tdt_watch().  All zero but `size` means the defaults; there are no others yet. */
struct tdt_watch_options {
	size_t size;    /* sizeof(struct tdt_watch_options), as in struct tdt_task_attr */
	uint64_t flags; /* 0 */
};

/*
 * Watch all tasks: capture each once in `interval_ns` nanoseconds (many tasks less often, see
 * above).  An interval of less than TDT_WATCH_MIN_NS counts as TDT_WATCH_MIN_NS. 0 stops the watch;
 * the recorded trees stay.  `options` may be NULL.  While a reader outside has requested a watch
 * (tdt/layout/outside.h), the shorter of the two intervals is in force.
 *
 * The first call starts a thread, "tdt-watch", with all signals blocked.  It sleeps, except for a
 * few instructions in each interval.  When the watch is stopped, the thread keeps sleeping: it is
 * never joined.  The first interval begins at once.  A child of fork() is not watched until the
 * child makes this call itself.  After a call of tdt_watch(), TDT_WATCH is no longer looked at.
 *
 * Returns 0, or a negative errno and sets errno: -EINVAL (`interval_ns` is negative,
 * or an option is wrong), -E2BIG, -ENOMEM,
 * -EAGAIN (no thread could be started).  Any thread.
 */
int tdt_watch(int64_t interval_ns, const struct tdt_watch_options *options);

/*
 * Get the last watched tree of a task.  The call does not touch the task, whatever the task is
 * doing.  `age_ns` of the trace is the age of the tree, and `polls_since` is the number of polls
 * that have begun after it.  The state of the task and the time in that state are the present ones.
 * The tree is always of a poll after which the task waited.  A task that has ended keeps its last
 * tree as long as there is a handle.  If modules were unloaded since the capture, the frames are
 * marked as guessed.
 *
 * Returns a trace, which the caller frees with tdt_trace_free().  On failure it returns NULL and
 * sets errno: ENODATA (the task was not watched yet), EINVAL (`handle` is NULL), ENOMEM.  Any
 * thread, also inside polls.
 */
TDT_MUST_USE
struct tdt_trace *tdt_backtrace_last(struct tdt_handle *handle);

TDT_DECLS_END

#endif
