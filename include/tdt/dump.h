/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_DUMP_H
#define TDT_DUMP_H /* stable from 1.0: docs/compatibility.md */

/*
 * A dump: where all tasks wait.
 *
 *	tdt_dump(stderr);                          // in tdt/trace.h: with the default options
 *	tdt_dump_on_signal(SIGUSR1, NULL);                   // from now on, kill -USR1 prints a dump
 *
 * (A program that is started with TDT_DUMP=USR1 in its environment needs no call for the latter.)
 *
 * A dump makes requests to all live tasks at the same time, with one deadline for the whole dump.
 * It stops no task, and waits for none beyond the deadline.  A task that answers in time shows its
 * fresh tree.  A task that waits at a list (tdt/integrate/leaf.h) answers at once.  A task that is
 * in the middle of a poll shows the stack of that poll.  Any other task shows its last watched tree
 * (tdt/watch.h), or, if it has none, only its record.
 */

#include <tdt/decls.h>
#include <tdt/misuse.h>
#include <tdt/print.h>
#include <tdt/tasks.h>

TDT_DECLS_BEGIN

/* Where a tree of a snapshot comes from. */
enum tdt_answer {
	TDT_ANSWER_FRESH = 0,   /* a poll answered the request, or the stack of a suspended fiber
				   was read, or a list at which the task waits (tdt_leaf_at()): it
				   shows where the task waits, or that the task has ended */
	TDT_ANSWER_RUNNING = 1, /* the task was in the middle of a poll, whose stack was read */
	TDT_ANSWER_LAST = 2,    /* the task did not answer: this is its last watched tree, or the
				   list that its last poll gave (tdt_leaf_at()) */
	TDT_ANSWER_NONE = 3     /* the task did not answer, and only its record is known */
};

/*
 * Tasks that wait at the same places.  All tasks of a group have the same tree (call by call), the
 * same enum tdt_answer, and the same state.
 */
struct tdt_snapshot_group {
	size_t size;                     /* sizeof(struct tdt_snapshot_group) */
	enum tdt_answer answer;
	uint32_t reserved;
	const struct tdt_trace *trace;   /* the trace of one of the tasks, for the tree; NULL with
					    TDT_ANSWER_NONE */
	const struct tdt_task_info *const *tasks; /* sorted: the task that has been in its state
						      for longest comes first */
	size_t n;                        /* the number of tasks, at least 1 */
};

/*
 * Tasks that wait for each other in a ring: each task waits for the next one, and the last task for
 * the first.
 *
 * `deadlock` is 1 if no task of the ring has another leaf that could make it go on.  Such a ring
 * lasts for ever, unless other code unlocks something that one of the tasks holds, or drops one of
 * them.  It is reported only if all of these tasks, and the other tasks that they wait for, have
 * answered, were polled meanwhile only because of requests (by any requester), and were not woken.
 * If a runtime does not report wake-ups (tdt_task_woken()), a task that was woken and has not been
 * polled yet seems to wait.  With such a runtime, `deadlock` may be set too early.
 *
 * For a task that did not answer, because its workers are held up, its record serves instead: the
 * task was neither woken nor polled meanwhile, and in its last poll one leaf reported a wait, which
 * is still true (for the end of a task, or for a lock that begins with a struct tdt_lock and has
 * the same owner now).  It is proof if the runtime reports wake-ups, and the task's last tree is of
 * that poll, and has no other leaf: a watched tree, a list (tdt_leaf_at()), the stack of a
 * suspended fiber.  Without such a tree a second leaf, which reported nothing, may be overlooked;
 * and a task whose wake-ups are not reported may be about to go on: `unproven` is set then instead
 * of `deadlock`.
 */
struct tdt_snapshot_cycle {
	size_t size; /* sizeof(struct tdt_snapshot_cycle), as in the other structs here */
	const struct tdt_task_info *const *tasks;
	size_t n; /* the number of tasks */
	uint8_t deadlock;
	uint8_t unproven; /* 1: the ring is a deadlock unless a task of it has a leaf that its
			     record does not know of */
	uint8_t reserved[2];
	uint32_t n_groups; /* of a deadlock: how many groups have its tasks, and no others.  The
			      groups of all deadlocks come first among the groups, in the order of
			      the deadlocks.  0: there was no memory for such groups */
};

/* Which process a snapshot was read from, and when: see `process` in struct tdt_snapshot. */
struct tdt_snapshot_process {
	size_t size;            /* sizeof(struct tdt_snapshot_process) */
	uint32_t pid;           /* the process, in its own PID namespace */
	uint32_t reserved;
	uint64_t registry;      /* the address of the library's registry (tdt/layout/registry.h) */
	uint64_t start_real_ns; /* when the library began its work in this process, or in one that
				   it was forked from; in nanoseconds of CLOCK_REALTIME */
	uint64_t now_ns;        /* when the tasks were read, in nanoseconds of CLOCK_MONOTONIC of
				   the process */
};
/*
 * A *futurelock*: a lock was handed to a future that its own task does not poll any more, because
 * the task now awaits something else.  All tasks that wait for the lock hang, and say so in a wait
 * with `futurelock` (struct tdt_wait), whose `owner` is the task that has the lock.  This is found
 * for a lock that begins with a struct tdt_lock and calls tdt_lock_hand() (tdt/integrate/hooks.h),
 * if the task waits, and a poll of it began at least a tenth of a second after the lock was handed
 * to it: the poll that answered this snapshot, or its last poll.  (Of a task that did not answer,
 * and whose runtime reports wake-ups, it is enough that the task was not woken since its last
 * poll.)
 */

struct tdt_snapshot {
	size_t size;                             /* sizeof(struct tdt_snapshot) of the library */
	uint64_t took_ns;                        /* the time to make all requests and wait for the
						    answers, in nanoseconds */
	size_t tasks;                            /* the number of tasks in all groups */
	size_t fresh;                            /* of these, TDT_ANSWER_FRESH */
	size_t running;                          /* TDT_ANSWER_RUNNING */
	size_t last;                             /* TDT_ANSWER_LAST */
	size_t unanswered;                       /* TDT_ANSWER_NONE */
	size_t lost;                             /* how many tasks are left out: for lack of memory;
						    or, where more than 16,384 tasks live or have
						    lived at a time, because to list them took
						    two fifths of `timeout_ns`, also if they do
						    not match the filter */

	/*
	 * The most suspicious first: the groups of deadlocks, in the order of the rings; then polls
	 * that are running; then runnable tasks; then the others.  Of two groups of one of the last
	 * three kinds, the one with the task that has been in its state for longer.
	 */
	const struct tdt_snapshot_group *const *groups;
	size_t n_groups;
	const struct tdt_snapshot_cycle *const *cycles; /* deadlocks first, then the unproven */
	size_t n_cycles;
	uint64_t panicked;                       /* the number of tasks that have panicked since the
						    start */
	/* The last of these, each with its trace and one task: see tdt_panics(). */
	const struct tdt_snapshot_group *const *panics;
	size_t n_panics;
	const struct tdt_misuse *misuse;         /* the first misuse that the library noticed: see
						    tdt_misused(); NULL: none */
	uint8_t outside;                         /* 1: the snapshot was read from outside the
						    process (tdt(1)), and only tasks with `asked`
						    had a request made to them */
	uint8_t recorded;                        /* 1: `outside` is 1, too, and the snapshot was
						    made of a recording (tdt(1), --dir): times are
						    relative to its end, and trees are recorded
						    stacks */
	uint8_t at_least;                        /* 1: `outside` is 1, too, and the snapshot was
						    made of a core file, which has no clock: all
						    ages are as of the latest time in it, and may be
						    longer */
	uint8_t unseen;                          /* 1: the snapshot is of a signal's dump: no
						    request was made to a task that waits and whose
						    last watched tree is of its last poll, and that
						    tree is shown */
	uint8_t reserved[4];
	const struct tdt_snapshot_process *process; /* if `outside` is 1; otherwise NULL */
	uint64_t held;                           /* the number of tasks that have ended, and whose
						    handles are still held: they are in no group */

	/*
	 * The *orphaned locks* that tasks wait for (see `orphaned` in struct tdt_wait).  Each has
	 * one task: the owner, which has ended, with the lock as its only wait; and a trace with
	 * the one frame where the lock was taken, or none if that is unknown.
	 */
	const struct tdt_snapshot_group *const *orphans;
	size_t n_orphans;
	/*
	 * If `outside` is 1: of the tasks that went on in the poll that a request brought, what was
	 * seen before it.  Each has one task and a trace.
	 */
	const struct tdt_snapshot_group *const *before;
	size_t n_before;
	/*
	 * The last *lost wake-ups*, 16 at most, the last one first: a task went on when it was
	 * polled for a request, and nobody had woken it.  Each has one task, as it was before:
	 * it had waited for `state_ns`, first of all for its only wait, and went on `age_ns` ago;
	 * `lost_times` says whether that is certain.  The trace is of that wait, and has no leaves
	 * if the task was not watched.
	 */
	const struct tdt_snapshot_group *const *lost_wakeups;
	size_t n_lost_wakeups;
	/*
	 * How many more tasks went on so within the last second, perhaps for the requests of this
	 * snapshot.  A wake-up may still come, and then it was not lost; a snapshot that is taken a
	 * second later says so.
	 */
	size_t n_unsure_lost;
};

/*
 * Options of a dump.  All zero but `size` means the defaults.  `size` is as in struct
 * tdt_task_attr.
 */
struct tdt_dump_options {
	size_t size;
	int64_t timeout_ns;                    /* the limit for the whole dump; 0: 1 second;
						  negative: EINVAL.  Waiting for answers takes at
						  most three quarters of it; tdt_dump_with() uses
						  the rest to look up names */
	const struct tdt_task_filter *filter;  /* NULL: all tasks */
	const struct tdt_print_options *print; /* for tdt_dump_with() and tdt_snapshot_print();
						  NULL: the defaults */
	uint32_t max_frames;                   /* as in struct tdt_backtrace_options */
	uint32_t max_ids;                      /* the most ids printed for a group, in text; 0: 8.
						  For tdt_dump_with() and tdt_snapshot_print() */
};

/*
 * Take a snapshot: make requests to all tasks, and wait for the answers.  `options` may be NULL:
 * that means the defaults.  Names are not looked up.
 *
 * Returns a snapshot, which the caller frees with tdt_snapshot_free().  Everything that it points
 * to is freed with it.  On failure it returns NULL and sets errno: EINVAL, E2BIG, or ENOMEM (there
 * was not enough memory even for the list of tasks).  If memory runs out later, some tasks have no
 * tree, or are left out and counted in `lost`, and cycles may be missing.
 *
 * May be called anywhere but in a signal handler.  Inside a poll or on a worker thread, it blocks
 * that thread until it returns, and tasks that the calling thread is polling show only their
 * record.
 */
TDT_MUST_USE
const struct tdt_snapshot *tdt_snapshot_take(const struct tdt_dump_options *options);

/* Free a snapshot.  NULL does nothing. */
void tdt_snapshot_free(const struct tdt_snapshot *snapshot);

/*
 * Print a snapshot: as text; or as one JSON object on one line (tdt-trace(5)), if
 * options->print->format is TDT_PRINT_JSON; or as folded stacks of all tasks, if it is
 * TDT_PRINT_FOLDED.  The text is a summary; then a line about the first misuse of the library, if
 * there was one (tdt_misused()); then the deadlocks, each with the groups of its tasks directly
 * below; then the other rings; then the other groups:
 *
 *	10,003 tasks, 1 deadlock: 10,002 answered, 1 without a tree (took 1.003 s)
 *
 *	deadlock: task 5 "a" waits for a mutex (0x7f10) held by task 6, which waits for task 5 "a"
 *	task 5 "a" pending 60.10 s, 1 leaf, spawned at a.c:230
 *	   waits for a mutex (0x7f10) held by task 6
 *	╼ ...
 *
 *	10,000 tasks pending 1.204 s to 60.10 s, e.g. 7 "c1", 8 and 9,998 more, spawned at a.c:226
 *	   9,998 wait for a mutex (0x7f20) held by task 5 "a"
 *	╼ connection_poll at a.c:196:3
 *	 └╼ tdt_mutex_lock at src/runtime/mutex.c:145:1
 *
 * The call looks up names, for 5 seconds at most.  A frame without a name after that time is
 * printed as module and offset, and is marked; the summary counts such frames: "3 frames not named
 * in time".
 *
 * Returns 0 or a negative errno, as tdt_trace_print_with() does. -EINVAL is also returned if the
 * snapshot contradicts itself (for example if a group has no tasks).  On -ENOMEM, text has been
 * printed as far as there was memory, and the places where something is missing are marked.
 */
int tdt_snapshot_print(const struct tdt_snapshot *snapshot, FILE *out,
		       const struct tdt_dump_options *options);

/*
 * Take a snapshot, print it, and free it, with one deadline for the snapshot and for its names.
 * (If nothing reads `out`, the time to write to it is not counted.)  The errors are those of the
 * three calls.  tdt_dump() (tdt/trace.h) is this call with `options` NULL.
 */
int tdt_dump_with(FILE *out, const struct tdt_dump_options *options);

/* Where the dumps of a signal go.  All zero but `size` means the defaults. */
struct tdt_signal_dump {
	size_t size;      /* sizeof(struct tdt_signal_dump), as in struct tdt_task_attr */
	const char *path; /* see tdt_dump_on_signal(); NULL: that of TDT_DUMP, or stderr */
	uint64_t flags;   /* 0 */
};

/*
 * Have the signal `signo` print a dump from now on; 0 ends that.  The handler only raises a
 * semaphore.  (It needs no descriptor, since the host could close a descriptor and reuse its
 * number.)  A thread of the library, "tdt-dump", which blocks all signals, prints the dump.
 * Signals that arrive during a dump lead to one more dump.
 *
 *	struct tdt_signal_dump where = { .size = sizeof where, .path = "/var/log/app.%p.json" };
 *
 *	tdt_dump_on_signal(SIGUSR1, NULL);
 *	tdt_dump_on_signal(SIGUSR1, &where);    // for a daemon: stderr is closed
 *
 * The dump goes to the file `path` of `options`.  If `options` or its `path` is NULL, it goes to
 * the file that TDT_DUMP names, otherwise to stderr.  In `path`, which is copied, "%p" stands for
 * the id of the process that dumps, and "%t" for the time in seconds since 1970.  Each dump opens
 * the file with the rights that the process then has (a relative path begins at the current
 * directory), creates it for its owner only (mode 0600) if there is none, and appends the dump with
 * one write(2).  If `path` ends in ".json", the dump is one JSON object on one line, and
 * tdt-print(1) prints the file; otherwise it is text.  What is a symbolic link, no regular file, a
 * file of another user than this one or root, one that all users may write to, or one that has
 * several names (hard links), is not written to.  If the file cannot be opened or written, the dump
 * is lost, and nothing else happens.  The same holds for an error of stderr.
 *
 * The signal's previous disposition is restored when the call is made with 0 or with another
 * signal.  A child of fork() ignores the signal until the child calls this function itself.
 *
 * TDT_DUMP=USR1 or TDT_DUMP=USR1:/var/log/app.%p.json in the environment has a signal dump that
 * these functions do not change: it dumps until the program installs a handler of its own for it,
 * also after a call with 0, and beside the signal of a call.  The signal is caught before main(),
 * but does nothing until the process makes its first traced future.  The same holds for a child of
 * fork().  tdt(3) explains the variable.
 *
 * The handler runs on the thread's alternate stack, if the thread has one (sigaltstack(2)),
 * otherwise on the stack that the thread is on.  It needs the space that the kernel uses there,
 * getauxval(AT_MINSIGSTKSZ) bytes, and less than 1 KiB more.
 *
 * Returns 0.  On an error it returns a negative errno, sets errno, and changes nothing: -EINVAL
 * (there is no such signal; or it cannot be caught; or the processor raises it, as SIGSEGV; or
 * `path` is empty), -E2BIG (see `size`), -ENAMETOOLONG (`path` has PATH_MAX bytes or more), -EBUSY
 * (the signal has a handler already), -EAGAIN (no thread could be started), -ENOMEM.  Any thread.
 */
int tdt_dump_on_signal(int signo, const struct tdt_signal_dump *options);

TDT_DECLS_END

#endif
