/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_DUMP_H
#define TDT_DUMP_H

/*
 * Where all tasks wait, at once.
 *
 *	tdt_dump_all(stderr);                          // in tdt/trace.h: the defaults
 *	tdt_dump_on_signal(SIGUSR1);                   // from now on: kill -USR1
 *
 * All live tasks are asked at the same time, with one deadline for the whole dump; nothing is stopped, and nothing is
 * waited for beyond it.  A task that answers in time shows its fresh tree.  One that is in the middle of a poll shows
 * the stack of that poll.  One that does neither shows the last tree that it was watched with (tdt/watch.h), or else
 * only its record.
 */

#include <tdt/print.h>
#include <tdt/tasks.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

/* Where a tree of a snapshot comes from. */
enum tdt_answer {
	TDT_ANSWER_FRESH = 0,   /* the task was polled, and showed where it waits (or that it has ended) */
	TDT_ANSWER_RUNNING = 1, /* its poll's stack was read */
	TDT_ANSWER_LAST = 2,    /* it did not answer: the last tree it was watched with */
	TDT_ANSWER_NONE = 3     /* neither: only what its record says */
};

/* Tasks that wait at the same places: alike in their trees, call by call, in where the tree comes from, and in state. */
struct tdt_snapshot_group {
	enum tdt_answer answer;
	const struct tdt_trace *trace;            /* of one of them, for the tree; NULL with TDT_ANSWER_NONE */
	const struct tdt_trace_info *const *tasks; /* the one that has been in its state for longest first */
	size_t n;                                 /* tasks: 1 at least */
};

/* Tasks that wait for each other in a ring: each for the next, the last for the first. */
struct tdt_snapshot_cycle {
	const struct tdt_trace_info *const *tasks;
	size_t n;
	uint8_t deadlock; /* none of them has another leaf that could bring it on: it is for ever, unless somebody else
			     unlocks what one of them holds, or drops one.  Told only if all of them, and whom else they
			     wait for, have answered, were polled meanwhile only because they were asked, by whomever,
			     and were not woken.  (Of a runtime that doesn't tell of wake-ups, tdt_task_woken(), a task
			     that was woken and not polled yet seems to wait: there it may be said too early) */
};

struct tdt_snapshot {
	size_t size;                             /* sizeof(struct tdt_snapshot) of the library */
	uint64_t took_ns;                        /* to ask and to wait for the answers */
	size_t tasks;                            /* in all groups */
	size_t answers[4];                       /* how many tasks with each enum tdt_answer */
	size_t lost;                             /* left out for want of memory */
	const struct tdt_snapshot_group *groups; /* the most suspicious first: whose oldest task is the oldest */
	size_t n_groups;
	const struct tdt_snapshot_cycle *cycles; /* deadlocks first */
	size_t n_cycles;
};

/* Choices; all zero (but `size`) for the defaults.  `size` as in struct tdt_task_attr. */
struct tdt_dump_options {
	size_t size;
	int64_t timeout_ns;                    /* for the whole dump; 0: 1 second; negative: EINVAL.  Asking takes three
						  quarters of it at most; tdt_dump() looks names up for the rest */
	const struct tdt_task_filter *filter;  /* NULL: all tasks */
	const struct tdt_print_options *print; /* NULL: the defaults.  tdt_dump() only */
	uint32_t max_frames;                   /* as in struct tdt_backtrace_options */
	uint32_t max_ids;                      /* of a group printed as text, 0: 8.  tdt_dump() only */
};

/*
 * Ask all tasks.  `options` may be NULL.  Returns a snapshot, for the caller to free with tdt_snapshot_free(); all it
 * points to goes with it.  Names have not been looked up.  NULL and errno: EINVAL, E2BIG, ENOMEM (not even the list of
 * tasks could be kept; where there is less memory than wanted, some tasks have no tree, or are left out and counted,
 * and no cycles may be found).
 *
 * May be called anywhere but in a signal handler, inside polls and on worker threads too, where it blocks that thread
 * for as long as it takes; tasks that are being polled on the calling thread have only their record.
 */
const struct tdt_snapshot *tdt_snapshot_take(const struct tdt_dump_options *options);
void tdt_snapshot_free(const struct tdt_snapshot *snapshot); /* NULL does nothing */

/*
 * Print a snapshot: as text, or with options->print->format TDT_PRINT_JSON as one JSON object on one line
 * (tdt-trace(5)), or as folded stacks of all tasks.  Text is a summary, then rings of waits, then the groups:
 *
 *	10,003 tasks, 1 deadlock: 10,002 answered, 1 without a tree (took 1.003 s)
 *
 *	deadlock: task 5 "a" waits for a mutex (0x7f10) held by task 6 "b", which waits for task 5 "a"
 *
 *	10,000 tasks pending 1.204 s to 60.10 s, e.g. 7 "conn 1", 8 and 9,998 more, spawned at demo/echo.c:226
 *	   9,998 wait for a mutex (0x7f20) held by task 5 "a"
 *	╼ connection_poll at demo/echo.c:196:3
 *	 └╼ tdt_mutex_lock at src/runtime/mutex_lock.c:21:3
 *
 * Names are looked up now, for 5 seconds at most.  Frames that have none then are module and offset, with a word for it,
 * and the summary counts them: "3 frames not named in time".
 *
 * Returns 0 or a negative errno, as tdt_trace_print_with() does; -EINVAL, too, if the snapshot is not whole.  With
 * -ENOMEM text has been printed as far as there was memory, and is marked where something is missing.
 */
int tdt_snapshot_print(const struct tdt_snapshot *snapshot, FILE *out, const struct tdt_dump_options *options);

/*
 * Take a snapshot, print it, free it, with one deadline for taking it and for names.  (What writing to `out` takes, if
 * nobody reads, is not counted.)  Errors of all three.  tdt_dump_all() is this with NULL.
 */
int tdt_dump(FILE *out, const struct tdt_dump_options *options);

/*
 * Have signal `signo` print a dump to stderr from now on; 0: no more.  The handler only raises a semaphore (it needs no
 * descriptor, which a host could close and reuse); a thread of the library's ("tdt-dump", all signals blocked) dumps.
 * Signals that come while it does lead to one more dump.  What goes wrong with stderr harms nobody.  The signal's old
 * disposition comes back with 0, or when another signal is chosen.  A child of fork() ignores the signal until it calls
 * this itself.
 *
 * The handler runs on the thread's alternate stack, if it has one (sigaltstack(2)), else on the
 * stack that the thread is on.  It takes what the kernel puts there, getauxval(AT_MINSIGSTKSZ)
 * bytes, and less than 1 KiB.
 *
 * Returns 0, or -EINVAL (no such signal, or one that can't be caught, or that the processor raises: SIGSEGV...), -EBUSY
 * (the signal has a handler already), -EAGAIN (no thread), -ENOMEM, and sets errno; then all is as before.  Any thread.
 */
int tdt_dump_on_signal(int signo);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
