/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_PRINT_H
#define TDT_PRINT_H

/* A trace in the forms people and programs read.  tdt_trace_print() (tdt/trace.h) prints text with the defaults. */

#include <tdt/tree.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

enum tdt_print_format {
	TDT_PRINT_TEXT = 0,  /* the task's line and its tree, as below */
	TDT_PRINT_JSON = 1,  /* one JSON object, on one line: tdt-trace(5) has the schema */
	TDT_PRINT_FOLDED = 2 /* a line a stack, outermost first, `;` between frames, then the count: for flame graphs */
};

enum tdt_print_choice {
	TDT_PRINT_AUTO = 0,
	TDT_PRINT_NO = 1,
	TDT_PRINT_YES = 2
};

/*
 * Options, all zero (but `size`) for the defaults.  Size, as in struct tdt_task_attr.
 *
 *	task 7 "bar" pending 1.204 s, 2 leaves, spawned at demo/taskdump.c:88
 *	╼ foo_poll at demo/taskdump.c:18:11
 *	 └╼ bar_poll at demo/taskdump.c:22:5
 *	    └╼ tdt_join_all at src/combine.c:58:9
 *	       ├╼ fiz_poll at demo/taskdump.c:26:15
 *	       │  └╼ pending_poll at demo/taskdump.c:14:8
 *	       └╼ buz_poll at demo/taskdump.c:30:11
 *
 * How long it has been pending is left out where it is not known, or less than the clock can tell.  Where more is known
 * of the task, the line says that, too, and lines below it say what it waits for if the tree doesn't:
 *
 *	task 8 "baz" running for 3.201 s on thread 4711, in read(), spawned at demo/taskdump.c:88 by task 3
 *	task 9 pending 60.00 s, 1 leaf, as seen 4.200 s and 12 polls ago, last woken 60.00 s ago by task 8
 *	   waits for a mutex (0x7f1208) held by task 8
 *
 * A frame whose names were not found in time reads `libfoo.so+0x1234 (not named in time)`.
 *
 * A sibling subtree that reads the same as one before it is drawn once, with ×N behind it.  Without debug information a
 * frame reads `function (libfoo.so+0x1234)`, or only `libfoo.so+0x1234`.  Lines below level 100 are indented as level
 * 100 is, and start with their level: `[101] `.
 *
 * tdt's own frames (functions whose names start with `tdt_`; all of libtdt.so and libtdt-rt.so) are left out where they
 * only lead on.  A call of tdt's that a task waits in is shown, as the innermost frame:
 *
 *	╼ worker_poll at demo/worker.c:88:4
 *	 └╼ tdt_mutex_lock at src/runtime/mutex_lock.c:21:3
 *
 * but not what it is made of: leaves that wait there count for it.
 *
 * Control characters, invisible ones, those that turn the direction of writing round, and invalid UTF-8
 * come out of names escaped, as in C: no name can harm a terminal, or hide a part of itself.
 */
struct tdt_print_options {
	size_t size;
	enum tdt_print_format format;
	enum tdt_print_choice utf8;  /* AUTO: if the process' locale (setlocale) is UTF-8; NO: ASCII lines */
	enum tdt_print_choice color; /* AUTO: if `out` is a terminal, TERM set and not "dumb", and NO_COLOR empty */
	uint8_t addresses;           /* print `symbol+0x1f` as tracers do, instead of the place in the source */
	uint8_t full_paths;          /* print the source's whole path, not the part below the build's directory */
	uint8_t plumbing;            /* show all of tdt's own frames, not only those that branch or are waited in.  JSON has all */
	uint8_t reserved;            /* 0 */
	uint32_t max_depth;          /* print so many levels of frames, and mark what is cut; 0: all.  Not JSON */
};

/*
 * Print `trace` to `out` as `options` (NULL: the defaults) say.  Returns 0 or a negative errno: -EINVAL, -E2BIG,
 * -ENOMEM, or what writing `out` gave (-ENOSPC, -EPIPE if SIGPIPE is ignored...); `out` is flushed.  After an error
 * some of it may have been written; JSON is then never complete.  `out` is locked meanwhile, but not while names are
 * looked up.  Any thread.
 */
int tdt_trace_print_with(const struct tdt_trace *trace, FILE *out, const struct tdt_print_options *options);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
