/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RECORDER_H
#define TDT_RECORDER_H /* stable from 1.0: docs/compatibility.md */

/*
 * The flight recorder: what happened in the last seconds.
 *
 * While it runs, the library records what happens to tasks: each poll with its duration, who woke
 * whom, what a leaf waits for, which task began and ended, and when a worker idled.  Each thread
 * writes into a ring of its own, in which the newest event overwrites the oldest one.
 *
 *	tdt_recorder_start(NULL);
 *
 * or, without a change of the program:
 *
 *	$ TDT_RECORD=16M ./server
 *	$ TDT_RECORD=16M TDT_RECORD_DIR=/dev/shm/server ./server
 *
 * An event takes some nanoseconds more than reading the clock, and no lock, no memory and no system
 * call.  While the recorder is off, it costs nothing.  docs/recorder.md has the figures.
 * tdt/layout/recording.h describes the memory of the rings, for readers.
 *
 * A poll of a millisecond or more, a wait of 100 ms or more for a worker, and a panic are
 * *remarkable*: they are also recorded in a second, small ring of the thread, which reaches back
 * for hours, since little is written there.
 *
 * A child of fork() goes on recording, in rings of its own, without the events of its parent.
 *
 * TDT_RECORD starts the recorder at the first traced future.  Its value is `ring_size` below: a
 * number, and K, M or G after it.  0 and the empty string mean off.  With TDT_RECORD,
 * TDT_RECORD_STACKS sets `stacks`: off, remarkable, or a number n for every n-th poll;
 * TDT_RECORD_DIR sets `dir`; and TDT_RECORD_DIR_SIZE, in the same units, sets `dir_size`.  If a
 * value is not understood, or if the directory cannot be used, `environment` in struct
 * tdt_recorder_status says so, and so does a line on standard error, if that is still the file that
 * it was when the library was loaded; in the latter case the recorder runs without files.  A
 * set-user-ID program ignores the four variables.
 */

#include <tdt/decls.h>
#include <tdt/print.h>

TDT_DECLS_BEGIN

/* Which polls have their stacks recorded: where the leaves of the task wait. */
enum tdt_recorder_stacks {
	TDT_STACKS_REMARKABLE = 0, /* those that are found to last for `long_poll_ns` or more */
	TDT_STACKS_OFF = 1,
	TDT_STACKS_EVERY = 2       /* these, and every `every`-th poll of each thread */
};

/* Fields that are 0 have the default that is named here. */
struct tdt_recorder_options {
	size_t size;           /* sizeof(struct tdt_recorder_options) */
	size_t ring_size;      /* the bytes of the ring of a thread that polls: 16 MiB.  Rounded
				  down to a power of two; at least TDT_RING_SIZE_MIN.  An event
				  takes 32 bytes, or some more if it has a text */
	size_t total_size;     /* the most bytes of a recording: 64 * `ring_size`, or 4 MiB if
				  that is more.  Rings become larger as they are written to, so
				  most recordings take less */
	uint64_t long_poll_ns; /* polls of at least this duration are remarkable: 1 ms */
	uint64_t long_wait_ns; /* so are waits for a worker of at least this: 100 ms */
	int stacks;            /* enum tdt_recorder_stacks */
	uint32_t every;        /* with TDT_STACKS_EVERY: 100 */
	const char *dir;       /* a directory where the rings are kept in a file, which survives
				  the process however that ends; NULL: they are in memory only */
	size_t dir_size;       /* with `dir`: the most bytes of all such files there: 1 GiB.
				  Processes that take room at the same moment may exceed it by
				  what they take, mostly less than 1 MiB each */
};

#define TDT_RING_SIZE_MIN 4096

/*
 * Start recording.  `options` may be NULL.
 *
 * The call starts a thread, "tdt-recorder", with all signals blocked.  It notes what the time is in
 * ticks of the processor's clock, reads the stacks of polls that last, gives the rings of ended
 * threads to new ones, and sleeps for 20 ms in between (100 ms while no task is polled).
 *
 * If the recorder ran before, and was stopped, it goes on in the same rings, unless the sizes or
 * the directory are others: then new ones are made, and the memory of the old ones is given back.
 *
 * With `dir`, the directory's last component is made if it is missing (mode 0700); it must not be a
 * symbolic link (-ELOOP).  The file is dir/tdt-PID-START.rec: START is when the process was
 * started, in clock ticks since boot (field 22 of /proc/PID/stat).  Only the owner may read it.  It
 * grows with what is written; for that it is kept open, as is its directory.  It stays when the
 * process ends.  If the files of this library in the directory have more than `dir_size` bytes,
 * those of processes that are gone are removed, the oldest first.  A directory on a tmpfs
 * (/dev/shm) costs no more than memory does.
 *
 * If the recorder runs only for a reader outside (tdt/layout/outside.h), the options of this call
 * replace those of the reader.
 *
 * Returns 0, or a negative errno and sets errno: -EALREADY (the recorder runs), -EINVAL (an option
 * is not understood), -E2BIG (see `size`), -ENOMEM, -EAGAIN (no thread could be started), or with
 * `dir` what open(2) or posix_fallocate(3) reports, such as -ENOENT, -EACCES, -ENOSPC.  Nothing has
 * changed then.  Any thread.
 */
int tdt_recorder_start(const struct tdt_recorder_options *options);

/*
 * Stop recording.  What was recorded stays, and can be read.  A poll in progress is still recorded
 * when it ends.  While a reader outside wants a recording (tdt/layout/outside.h), the recorder goes
 * on for the reader.  Returns 0, or -EALREADY and sets errno if the recorder does not run, or only
 * for a reader.  Any thread.
 */
int tdt_recorder_stop(void);

struct tdt_recorder_status {
	size_t size;           /* sizeof(struct tdt_recorder_status), set by the caller */
	uint32_t recording;    /* 1: it runs */
	int environment;       /* 0, or a negative errno: what was wrong with TDT_RECORD,
				  TDT_RECORD_STACKS, TDT_RECORD_DIR or TDT_RECORD_DIR_SIZE */
	uint64_t missed;       /* events that were not recorded, because no ring was free */
	uint64_t missed_polls; /* as many of them were polls */
	uint64_t lost_stacks;  /* stacks for which the table of stacks had no room, and polls that
				  were due to be captured when no spare capture was left */
	uint64_t rings;        /* that are in use */
	char *path;            /* where the caller wants the path of the file, which is empty if
				  there is none; NULL: nowhere */
	size_t path_size;      /* the bytes that `path` has room for; set by the caller */
};

/*
 * Ask how the recorder does.
 *
 *	struct tdt_recorder_status info = { .size = sizeof info };
 *
 *	if (tdt_recorder_info(&info) == 0 && info.environment != 0)
 *		warn("TDT_RECORD: %s", strerror(-info.environment));
 *
 * Returns 0.  Returns -EINVAL and sets errno if `info` is NULL or its size is too small for `size`
 * itself, and -ERANGE if the path and its NUL have no room; `info` is as it was then.  If the size
 * is larger than that of the library, the rest is filled with zeros.  Any thread.
 */
int tdt_recorder_info(struct tdt_recorder_status *info);

/* Options of a snapshot of the recorder.  All zero but `size` means the defaults. */
struct tdt_recorder_snapshot_options {
	size_t size;       /* sizeof(struct tdt_recorder_snapshot_options) */
	uint64_t since_ns; /* only what was recorded in the last so many nanoseconds; 0: all */
	uint64_t flags;    /* 0 */
};

/*
 * Write what the recorder has recorded, and still has, to a file.  `options` may be NULL.
 *
 *	tdt_recorder_snapshot("/var/tmp/server.rec", NULL);
 *
 * The threads go on recording meanwhile, and none of them waits.  The file is a recording in the
 * layout of tdt/layout/recording.h.  Besides the events it names all live tasks and the modules of
 * the program.  What was overwritten before it could be copied is counted: see `first` in struct
 * tdt_recording_ring.
 *
 * If `path` ends in ".pftrace", the file is a trace for Perfetto (https://ui.perfetto.dev), and if
 * it ends in ".pftrace.gz", a compressed one.  Such a call looks up names, for 5 seconds at most.
 *
 * The snapshot is written to a new file beside `path`, with a name of its own, which is then
 * renamed to `path`.  So `path` always has a whole snapshot.  Only the owner may read the file
 * (mode 0600).  If `path` exists, it must be a regular file, and not a symbolic link.
 *
 * The call needs memory for a copy of the events, and for 32 MiB of them some 30 ms.  The recorder
 * need not run any more.
 *
 * Returns 0, or a negative errno and sets errno; then there is no new file, and an old one is
 * unchanged: -EINVAL (`path` is NULL or empty, or is no regular file, or an option is wrong),
 * -E2BIG (see `size`), -ELOOP (it is a symbolic link), -ENAMETOOLONG, -ENODATA (nothing has been
 * recorded), -ENOMEM, or what open(2), write(2) or rename(2) reports, such as -ENOENT,
 * -EACCES, -ENOSPC, -EFBIG (without the signal SIGXFSZ).  Any thread; not in a signal handler.
 */
int tdt_recorder_snapshot(const char *path, const struct tdt_recorder_snapshot_options *options);

/*
 * Have the signal `signo` write a snapshot to the file `path` from now on; 0 ends that.
 *
 *	tdt_recorder_on_signal(SIGUSR2, "/var/tmp/server.%p.%t.rec", NULL);
 *
 * In `path`, which is copied, "%p" stands for the id of the process, and "%t" for the time, in
 * seconds since 1970.  The thread "tdt-dump" writes the snapshot, as tdt_recorder_snapshot() does
 * with these options.  If that fails, nothing else happens.  Everything else is as with
 * tdt_dump_on_signal(): the handler, the signal's previous disposition, children of fork().  One
 * signal cannot write both dumps and snapshots.
 *
 * TDT_RECORD_FILE=USR2:/var/tmp/server.%p.%t.rec in the environment does the same without a change
 * of the program, by the rules of TDT_DUMP (tdt(3), "ENVIRONMENT").  TDT_RECORD starts the
 * recorder.
 *
 * Returns 0, or a negative errno, sets errno and changes nothing: -EINVAL (the signal cannot be
 * used, `path` is NULL or empty, or an option is wrong), -E2BIG, -ENAMETOOLONG, -EBUSY (the signal
 * has a handler already, which may be that of tdt_dump_on_signal()), -EAGAIN (no thread could be
 * started), -ENOMEM.  Any thread.
 */
int tdt_recorder_on_signal(int signo, const char *path,
			   const struct tdt_recorder_snapshot_options *options);

/* When to write a snapshot, and where to.  All zero but `size` and `path` is never. */
struct tdt_recorder_trigger {
	size_t size;           /* sizeof(struct tdt_recorder_trigger) */
	const char *path;      /* as with tdt_recorder_on_signal() */
	uint64_t long_poll_ns; /* a poll has lasted for so long, whether or not it has ended; 0:
				  polls trigger nothing.  No less than that of the recorder */
	uint64_t long_wait_ns; /* a task has waited for a worker for so long; 0: waits trigger
				  nothing.  No less than that of the recorder */
	uint32_t panics;       /* 1: a task has panicked */
	uint32_t per_hour;     /* the most snapshots in any hour: 4; at most 60 */
	uint64_t since_ns;     /* as in struct tdt_recorder_snapshot_options */
};

/*
 * Write a snapshot when one of these things happens, while the recorder runs.
 *
 *	const struct tdt_recorder_trigger trigger = { .size = sizeof trigger,
 *						      .path = "/var/tmp/server.%p.%t.rec",
 *						      .long_poll_ns = 1000000000,
 *						      .panics = 1 };
 *
 *	tdt_recorder_on_trigger(&trigger);
 *
 * The recorder's thread writes the snapshot some 10 to 200 milliseconds later, so that it also
 * shows what followed.  What happens meanwhile leads to no further snapshot.  A snapshot that
 * cannot be written counts as one.  The call replaces the triggers of an earlier call; NULL ends
 * them.  A child of fork() keeps the triggers.
 *
 * Returns 0, or a negative errno, sets errno and changes nothing: -EINVAL (`path` is NULL or empty,
 * or another field is not understood), -E2BIG (see `size`), -ENAMETOOLONG, -ENOMEM.  Any thread.
 */
int tdt_recorder_on_trigger(const struct tdt_recorder_trigger *trigger);

/* Options of a summary.  All zero but `size` means the defaults. */
struct tdt_summary_options {
	size_t size;                           /* sizeof(struct tdt_summary_options) */
	const struct tdt_print_options *print; /* as text or JSON; NULL: text */
	uint64_t since_ns;                     /* only what happened in the last so many
						  nanoseconds; 0: everything */
	uint32_t rows;                         /* the most entries of each list; 0: 3 in text, and
						  100 in JSON or if `full`; at most 100,000 */
	uint8_t full;                          /* text: whole stacks, and how far each ring reaches
						  back */
	uint8_t reserved[3];                   /* 0 */
};

/*
 * Print to `out` what has happened: the slowest polls, the longest waits, who held the lock, how
 * long tasks waited for a worker, the busiest tasks, and what each worker did.  `options` may be
 * NULL.
 *
 *	tdt_recorder_summary(stderr, NULL);
 *
 * 	server[4711]: 12.40 s until 2026-11-22 03:12:44.120
 * 	1,204,331 polls, 803,112 wake-ups, 10,003 tasks, 1 panicked
 *
 * 	slowest polls
 * 	   50.11 ms  03:12:43.120  task 7 "parser" on thread 4712
 * 	             in spin at demo/x.c:18:11 from parser_poll at demo/x.c:40:3
 *
 * 	longest waits for locks
 * 	   80.02 ms  03:12:43.120  task 9 "reader"
 * 	             for a mutex "table" (0x7f1208) held by task 8 "writer"
 *
 * docs/recorder.md explains each part, and tdt-trace(5) the JSON.  tdt-print(1) prints the same of
 * the file of a process that is gone.
 *
 * The call copies the rings, which takes as much memory as they have, and does not hold the threads
 * up that write to them.  It waits for the names of functions for 5 seconds at most.
 *
 * Returns 0, or a negative errno and sets errno: -ENODATA (the process has never recorded), -EINVAL
 * (`out` is NULL, an option is wrong, or the form is that of folded stacks), -E2BIG, -ENOMEM, or
 * the error of writing.  Any thread, except in a poll that must not block.
 */
int tdt_recorder_summary(FILE *out, const struct tdt_summary_options *options);

TDT_DECLS_END

#endif
