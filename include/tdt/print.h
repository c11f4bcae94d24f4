/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_PRINT_H
#define TDT_PRINT_H /* stable from 1.0: docs/compatibility.md */

/*
 * Print a trace, in forms for people and for programs. tdt_trace_print() (tdt/trace.h) prints text
 * with the default options.
 */

#include <tdt/decls.h>
#include <tdt/tree.h>

TDT_DECLS_BEGIN

enum tdt_print_format {
	TDT_PRINT_TEXT = 0,  /* the task's line and its tree, as below */
	TDT_PRINT_JSON = 1,  /* one JSON object, on one line: tdt-trace(5) has the schema */
	TDT_PRINT_FOLDED = 2 /* for flame graphs: one line for each stack, outermost frame first,
				`;` between frames, then the count */
};

enum tdt_print_choice {
	TDT_PRINT_AUTO = 0,
	TDT_PRINT_NO = 1,
	TDT_PRINT_YES = 2
};

/*
 * Options of printing.  All zero but `size` means the defaults.  `size` is as in struct
 * tdt_task_attr.
 *
 * The text form:
 *
 * 	task 7 "bar" pending 1.204 s, 2 leaves, spawned at demo/taskdump.c:88
 * 	╼ foo_poll at demo/taskdump.c:18:11
 * 	 └╼ bar_poll at demo/taskdump.c:22:5
 * 	    └╼ tdt_join_all at src/future/combine.c:58:9
 * 	       ├╼ fiz_poll at demo/taskdump.c:26:15
 * 	       │  └╼ pending_poll at demo/taskdump.c:14:8
 * 	       └╼ buz_poll at demo/taskdump.c:30:11
 *
 * The time that the task has been pending is left out if it is not known, or is less than the clock
 * can measure.  If more is known of the task, its line shows that too.  If the tree does not show
 * what the task waits for, lines below the task's line do:
 *
 * 	task 8 "baz" running for 3.201 s on thread 4711, in read(), spawned at a.c:88 by task 3
 * 	task 9 pending 60.00 s, 1 leaf, as seen 4.200 s and 12 polls ago, last woken 60.00 s ago by task 8
 * 	   waits for a mutex (0x7f1208) held by task 8
 *
 * A frame whose names were not found in time is printed as `libfoo.so+0x1234 (not named in time)`.
 *
 * If a subtree reads the same as a sibling before it, both are drawn once, with ×N behind them.
 * Without debug information a frame is printed as `function (libfoo.so+0x1234)`, or only as
 * `libfoo.so+0x1234`.  Lines below level 100 are indented as level 100 is, and start with their
 * level: `[101] `.
 *
 * The text form folds the calls in libraries, so that the reader sees the program's own code, and
 * below it, on one line, the operation that it called:
 *
 * 	╼ serve::greet::{async} at src/main.rs:21:20
 * 	 └╼ tokio::time::Sleep at tokio-1.24.2/src/time/sleep.rs:433:36
 *
 * The functions that this operation calls are not shown, nor are those of a library or language
 * between two own functions (Pin::poll, catch_unwind, std::invoke), unless they lead to several
 * places.  If the operation has several leaves, the operations of other libraries in it are shown
 * below it.  The name of an operation is shortened: it has no template arguments and no `poll`.
 * If it waits for an object that the program gave it, the type of the object follows:
 *
 * 	╼ tokio::io::util::Read at tokio-1.24.2/src/io/util/read.rs:52 (on tokio::net::TcpStream)
 *
 * Leaves in frames that are not shown count as leaves of the nearest shown frame above.
 *
 * Futures that wait in some types of libraries are in no tree, because these types poll them with
 * wakers of their own: FuturesUnordered and Shared of Rust's crate futures-util, and what is made
 * of them, such as a join_all() of more than 30 futures.  Their line ends in `(futures that wait in
 * it are not shown)`.  Trace such futures as tasks if they are to be seen.
 *
 * The program's own code is what was compiled into the main program from sources that belong to no
 * package; and the libraries whose sources lie with the program's, below the directory where the
 * program was compiled.  Packages are known by their paths: cargo's registry and checkouts,
 * vendor/NAME/src, CMake's _deps, /usr.  If a tree is made of packages only, as that of a
 * connection of hyper, the outermost function of a package is shown, and below it the first one of
 * another package.  If it has no own code, but code whose origin is unknown, as in a stripped
 * program, the whole tree is shown.  `full` shows the whole of every tree.
 *
 * The path of own code is that below the directory where it was compiled; the path of a package
 * begins with the name of the package, and that of another library with its directory's.
 *
 * Frames of tdt itself are functions whose names start with `tdt_`, and all functions of libtdt.so
 * and libtdt-rt.so.  They are left out where they lead to one child only.  If a task waits in a
 * call of tdt, that call is shown as the innermost frame:
 *
 * 	╼ worker_poll at demo/worker.c:88:4
 * 	 └╼ tdt_mutex_lock at src/runtime/mutex.c:145:1
 *
 * The frames below that call are not shown; the leaves in them count as leaves of the call.
 *
 * Some characters in names are escaped as in C: control characters, invisible characters,
 * characters that change the direction of writing, and invalid UTF-8.  Thus no name can harm a
 * terminal, or hide a part of itself.
 */
struct tdt_print_options {
	size_t size;
	enum tdt_print_format format;
	enum tdt_print_choice utf8;  /* AUTO: UTF-8 if the process' locale (setlocale) is UTF-8;
					NO: lines in ASCII */
	enum tdt_print_choice color; /* AUTO: if `out` is a terminal, TERM is set and not "dumb",
					and NO_COLOR is empty */
	uint8_t addresses;           /* print `symbol+0x1f`, as tracers do, instead of the place in
					the source */
	uint8_t full_paths;          /* print the whole path of the source, not only the part below
					the directory of the program, or from the package on */
	uint8_t plumbing;            /* show all frames of tdt itself, not only those that branch
					or that a task waits in.  JSON always has all frames */
	uint8_t full;                /* show the calls in libraries one by one, too: fold nothing.
					JSON and folded stacks always have all calls */
	uint32_t max_depth;          /* the most levels of frames to print; a mark shows where more
					follow.  0: all.  JSON always has all levels */
	uint32_t reserved;

	/*
	 * Where the bytes go if the call's `out` is NULL: `write` is called with `arg` and the next
	 * `n` bytes, on the calling thread, and returns 0, or a negative errno, which the call then
	 * returns too.  It is called for pieces of some KiB, and no more after an error.
	 */
	int (*write)(void *arg, const char *bytes, size_t n);
	void *arg;
};

/*
 * Print `trace` to `out` with `options` (NULL: the defaults).  `out` may be NULL if the options
 * have a `write`, here and in all calls that take such options.
 *
 * Returns 0, or a negative errno and sets errno: -EINVAL, -E2BIG, -ENOMEM, or the error of writing
 * to `out` (-ENOSPC, -EPIPE if SIGPIPE is ignored, and others).  `out` is flushed.  After an error,
 * a part may have been written; a JSON object is then never complete.  `out` is locked while the
 * call writes, but not while it looks up names.  Any thread.
 */
int tdt_trace_print_with(const struct tdt_trace *trace, FILE *out,
			 const struct tdt_print_options *options);

TDT_DECLS_END

#endif
