/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_H
#define TDT_TREE_H /* stable from 1.0: docs/compatibility.md */

/*
 * Walk a trace: the facts that it has of the task, the task's call tree with names, and the raw
 * stacks that the tree was made of.
 *
 *	static void show(const struct tdt_node *node, int depth)
 *	{
 *		const struct tdt_frame *frame = tdt_node_frame(node);
 *
 *		printf("%*s%s\n", depth * 2, "", frame->function != NULL ? frame->function : "?");
 *		for (node = tdt_node_first_child(node); node != NULL;
 *		     node = tdt_node_next_sibling(node))
 *			show(node, depth + 1);
 *	}
 *	...
 *	show(tdt_trace_root(trace), 0);
 *
 * (A tree is as deep as the stack was.  Code that may meet deep trees should use tdt_node_parent()
 * instead of recursion.)
 *
 * If a trace or a node is NULL, these calls return NULL or 0, and set errno to EINVAL.  Everything
 * that they return belongs to the trace, and lives as long as the trace.  Several threads may read
 * a trace at a time.  While one thread builds or frees a trace, no other thread may use it.
 * Nothing here is async-signal-safe.
 */

#include <tdt/context.h>
#include <tdt/decls.h>
#include <tdt/trace.h>

TDT_DECLS_BEGIN

struct tdt_node;

/* The state in which a request found the task. */
enum tdt_task_state {
	TDT_TASK_WAITING = 0, /* the poll returned TDT_PENDING, and the tree shows where the task
				 waits.  Printed as "pending" */
	TDT_TASK_RUNNING = 1, /* the task is in the middle of a poll: the tree is its stack */
	TDT_TASK_READY = 2,   /* the poll that took the request ended the task */
	TDT_TASK_PANICKED = 3, /* the same, with TDT_PANICKED */
	TDT_TASK_RUNNABLE = 4, /* between two polls, but no longer waiting: the task was woken
				  since its last poll began.  Only records say this, traces of
				  suspended fibers and of tasks that wait at a list
				  (tdt_leaf_at()), and dumps of tasks that did not answer; and
				  only if the task's runtime reports wake-ups
				  (tdt_task_woken()) */
	TDT_TASK_UNKNOWN = 5   /* only in what is made of a recording (tdt(1), --dir): events that
				  are missing there may have changed the state, or ended the
				  task */
};

/* Whether the leaves of a tree are all that the task waits in. */
enum tdt_leaves_known {
	TDT_LEAVES_ALL = 0,
	TDT_LEAVES_PART = 1,   /* others may be missing: the tree is the stack of one coroutine of
				  the task, or leaves were lost or are on other threads */
	TDT_LEAVES_UNKNOWN = 2 /* the tree is of an earlier poll, or is a list that a poll gave
				  (tdt_leaf_at()), or the task runs */
};

/* The kinds of objects that a leaf may wait for: see tdt_leaf_waits_on(). */
enum tdt_wait_kind {
	TDT_WAIT_UNKNOWN = 0,
	TDT_WAIT_TASK = 1,    /* the end of a task: `owner` is its id */
	TDT_WAIT_MUTEX = 2,   /* a lock: `owner` is the task that holds it */
	TDT_WAIT_CHANNEL = 3, /* a value from a channel */
	TDT_WAIT_TIMER = 4,   /* a point in time */
	TDT_WAIT_IO = 5,      /* a socket, a file, a process: `object` is the descriptor, if any */
	TDT_WAIT_OTHER = 6,
	TDT_WAIT_SEMAPHORE = 7,   /* a permit */
	TDT_WAIT_NOTIFICATION = 8 /* the word that something has changed */
};

/* So many bytes of the name of an object are kept. */
#define TDT_WAIT_NAME_MAX 63

/* The object that a leaf waits for.  Later versions may add fields at the end. */
struct tdt_wait {
	size_t size; /* sizeof(struct tdt_wait) of the library, or of whoever made it */
	enum tdt_wait_kind kind;
	uint32_t futurelock; /* 1: the lock was handed to a future that its own task, `owner`, does
				not poll.  Only dumps find this out: see struct tdt_snapshot */
	uint64_t object; /* distinguishes objects of a kind: the object's address, or the
			    descriptor; 0: unknown */
	uint64_t owner;  /* the id of the task that the wait depends on; 0: none, or unknown */
	char name[TDT_WAIT_NAME_MAX + 1]; /* the name that the object was given; empty: none */
	uint64_t handed_ns; /* how long ago the lock was handed to `owner`, which has not taken it;
			       0: `owner` holds the lock, or this is unknown */
	const char *owner_name; /* the name of the task `owner`; NULL: none, or unknown.  In a dump
				   it is unknown if the owner is among the tasks */
	uint32_t orphaned; /* 1: `owner` has ended without giving the lock back, so the wait never
			      ends.  This is found out for locks that begin with a struct
			      tdt_lock */
	uint32_t reserved;
};

/*
 * The facts that a trace has of its task, and that a record has (tdt/tasks.h).  Later versions may
 * add fields at the end.  Times are measured by the clock that the task's runtime reports
 * (tdt_worker_now()).  Without that clock they are precise to some milliseconds only.
 */
struct tdt_task_info {
	size_t size;      /* sizeof(struct tdt_task_info) of the library that made it */
	uint64_t id;
	const char *name; /* NULL: none */
	const char *file; /* where the task was spawned; NULL: unknown */
	uint32_t line;
	uint32_t column;  /* 0: unknown */
	enum tdt_task_state state;
	uint32_t leaves;           /* the number of leaves in the tree.  0: the poll cloned no
				      waker, so the tree does not show what the task waits for;
				      or it is a fiber that has not run (`polls` is 0).
				      Until tdt_trace_root() has found the names, this is the
				      number of all captured leaves */
	uint32_t leaves_elsewhere; /* wakers that other threads cloned during the poll: they are
				      not in the tree */
	uint32_t leaves_lost;      /* stacks that were discarded, for lack of memory or of room
				      (tdt/watch.h) */
	uint64_t state_ns;         /* how long the task had been in its state.  A poll that was
				      made only to answer a request does not end a wait, unless
				      the task went on in it (`moved`); before
				      the first poll, a wait begins when the task is spawned.
				      TDT_TASK_RUNNABLE: the time since the last wake-up */
	uint64_t polls;            /* polls of the task so far, including the one that answered;
				      for a task of tdt_task_new(), how often it went on */
	uint64_t parent;           /* the id of the task that spawned it; 0: none */
	uint64_t woken_ns;         /* the time since the last wake-up; 0: there was none, or the
				      runtime does not report wake-ups */
	uint64_t woken_by;         /* the id of the task that made that wake-up; 0: none, or
				      unknown */
	uint64_t age_ns;           /* the age of the tree; 0: it was made for this request
				      (tdt/watch.h) */
	uint64_t polls_since;      /* polls that began after the poll of the tree */
	uint32_t thread;           /* TDT_TASK_RUNNING: the id of the thread that polls the task
				      (gettid(2)); otherwise 0 */
	uint32_t n_waits;
	const struct tdt_wait *const *waits; /* what the leaves wait for, as far as they report
						it: first the wait that says most, for a lock, or
						else for a task; NULL: no leaf does */
	const char *syscall;       /* TDT_TASK_RUNNING: the system call in which the thread is
				      blocked; NULL: none */
	uint32_t leaves_unsure;    /* how many of `leaves` are at places where some leaves may be
				      over, since the task may have gone on in the same poll; 0: no
				      leaf is in doubt.  See "Leaves that are over" in
				      tdt-trace(5).  It is set when the names are known */
	uint32_t requested;        /* in a snapshot that was read from outside the process (tdt(1)):
				      how many polls were made only for a request, and left the
				      task waiting, modulo 128; otherwise 0 */
	uint32_t unknown_stack;    /* TDT_TASK_RUNNING without a tree: 1 if the thread was on a
				      stack that is not known as the task's own: it belongs to a
				      coroutine or a fiber that was not reported, or to another
				      fiber; otherwise 0 */
	uint32_t asked;            /* in such a snapshot: 1 if a request was made to the task;
				      otherwise 0 */
	uint64_t spawned_ns;       /* in such a snapshot: the time since the task was spawned; 0:
				      unknown */
	uint64_t polled_ns;        /* in such a snapshot: the time since the last poll began that is
				      not among `requested`, or before the first poll, since the
				      task was spawned; 0: unknown */
	enum tdt_leaves_known leaves_known; /* has a meaning if `leaves` is not 0 */
	uint32_t moved;            /* 1: the task went on in the poll that answered, which was made
				      only for that, and waits for something else now: its leaf
				      reports another object.  `state_ns` is how long it had waited
				      until then */
	uint64_t busy_polls;       /* in a dump: the task is in a *busy loop*.  It was polled so
				      often in `busy_ns`, each time because it had woken itself; or
				      if `woken_by` is not the task, for a reason that is not known,
				      because its runtime reports no wake-ups.  0: it is in none */
	uint64_t busy_ns;
	uint32_t lost_times;       /* of a lost wake-up (`lost_wakeups` in struct tdt_snapshot): so
				      many of these were at this place; 1 too if the place is
				      not known.  Otherwise 0 */
	uint32_t untraced;         /* 1: nobody traces the task.  Its runtime reports it
				      (tdt_hook_spawn()), so it has no tree while it waits */
	uint32_t child;            /* 1: the task is a part of `parent` (TDT_ATTR_CHILD), as a
				      future is whose combinator has a waker of its own, so that
				      it is in no tree of the parent.  The text of a dump has it
				      below that one */
	uint32_t aborted; /* 1: the task was aborted (tdt/join.h), by the task `woken_by`, or if
			     that is 0, not by a task.  It is dropped at its next turn */
	struct tdt_trace_context context; /* tdt_task_context(); if `valid` is 0, it has none */
	uint32_t blocking; /* 1: the task is a call that may block (TDT_ATTR_BLOCKING): the thread
			      on which it runs is there for such calls, and is no worker */
};

/*
 * Return the facts that a trace has of its task.  The result is NULL only if `trace` is.  Once
 * tdt_trace_root() has found the names, this call returns another struct than before, with the new
 * numbers of leaves.  The previous struct stays valid.
 *
 * (The function has the name of a struct, as stat() has.  Therefore C++ code must write `struct`
 * before the name to mean the struct, and g++ -Wshadow would warn here.)
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
const struct tdt_task_info *tdt_trace_info(const struct tdt_trace *trace);
#pragma GCC diagnostic pop

/* The kinds of nodes of a tree. */
enum tdt_node_kind {
	TDT_NODE_TASK = 0,  /* the root: the task itself */
	TDT_NODE_FRAME = 1, /* a function that waits for its children; without children: a leaf */
	TDT_NODE_CUT = 2    /* a gap: frames are missing between the parent and the children of this
			       node, and `cut` says why */
};

enum tdt_cut {
	TDT_CUT_NOT = 0,
	TDT_CUT_LIMIT = 1,    /* more frames than the limit (struct tdt_backtrace_options,
				 tdt/watch.h); or, for a running poll, more than 1 MiB of stack or
				 16 stacks (tdt/integrate/stack.h) */
	TDT_CUT_NO_INFO = 2,  /* a frame with neither unwind information nor a frame pointer */
	TDT_CUT_CORRUPT = 3,  /* the next frame would lie outside the stack: the stack was
				 overwritten, or the unwind information is wrong */
	TDT_CUT_STACK = 4,    /* the leaf was polled, or the poll runs, on another stack than the
				 traced future, and the way there was not reported
				 (tdt_stack_enter()) */
	TDT_CUT_MEMORY = 5,   /* there was no memory to record more frames */
	TDT_CUT_UNSUPPORTED = 6 /* a frame whose unwind information cannot be followed: it needs a
				   register whose value is not known there, or the library does not
				   understand it */
};

/*
 * One frame.  An unknown string is NULL, and an unknown number is 0.  Functions that the compiler
 * inlined are nodes of their own.  Their `pc` is that of the function that they were inlined into,
 * and they have no `symbol`.  Later versions may add fields at the end.
 */
struct tdt_frame {
	size_t size;             /* sizeof(struct tdt_frame), as the library or the caller that
				    filled it in knows the struct */
	enum tdt_node_kind kind;
	enum tdt_cut cut;
	uint64_t pc;             /* of a frame: the return address, as it is on the stack.  For the
				    innermost frame of a running poll: the present address plus
				    one.  So a name is always looked up at pc - 1.  0 in a task and
				    in a cut */
	const char *function;    /* the demangled name, from debug information or otherwise from
				    the symbol table */
	const char *file;        /* the full path of the source file */
	const char *directory;   /* where the unit was compiled: the prefix of `file` that short
				    paths leave out */
	uint32_t line;
	uint32_t column;
	const char *module;      /* the path of the executable or library */
	uint64_t module_offset;  /* of the PC, from the module's load address */
	const char *symbol;      /* the ELF symbol that contains the PC, not demangled */
	uint64_t symbol_offset;  /* of the PC in that symbol: tracers print symbol+0xoffset */
	const char *build_id;    /* of the module, in hexadecimal */
	uint8_t inlined;         /* this function was inlined into that of its parent node */
	uint8_t guessed;         /* the step to the next outer frame is a best guess, and callers
				    may be missing there: the step used a frame pointer, or a value
				    that looks like one (in a blocked thread), or modules were
				    unloaded meanwhile */
	uint8_t unnamed;         /* the names were not found in time: only module and offset are
				    known */
	uint8_t reserved[5];
	const char *const *also; /* the other names of the function, at most 4, then NULL: compilers
				    and linkers fold functions with the same code into one.  Weak
				    names, and names that C reserves for libraries, count as
				    aliases and are left out.  All are left out if no debug
				    information describes the function.  NULL: none */
	const char *missing;     /* the .dwo file (-gsplit-dwarf) that has the line, and was not
				    found, or is not the right one.  NULL: none */
};

/*
 * Return the root of the tree: the task itself.  Its children are the outermost functions.
 * Siblings are in the order in which they were first seen.  Two frames are one node if their PCs
 * are the same and their parents are one node.  Frames of the same function, line and column under
 * one parent are also one node, with the PC that was seen first (a compiler may make several calls
 * of one).
 *
 * The first call of this function has the names looked up through libdw.  A thread of the library
 * ("tdt-names", which blocks all signals) does this, and the call waits for the names, for 5
 * seconds at most.  The first trace of a process takes a millisecond or more, and some tens of
 * milliseconds if it leads through a unit of thousands of functions.  A frame whose names are not
 * found in time (a stalled file system, huge debug information) is marked `unnamed`, and stays so
 * in this trace; a later trace may find its names.  If no thread can be started, the calling thread
 * looks up the names itself, without a limit.  Apart from this function, only the calls that print
 * look up names.  Therefore a thread that polls never waits for names, unless it requests them
 * itself.
 *
 * A frame of a module that has no debug information, or is gone, has the facts that could be found.
 * The library searches for debug files by build-id and beside the module, and for .dwo files beside
 * the module and its debug file, where the unit was compiled, and in `module`.dwp.  With
 * TDT_DEBUGINFOD=1 and DEBUGINFOD_URLS in the environment, libdw also queries those servers.  (For
 * that libdw calls dlopen(), which may wait for the dynamic loader.)
 *
 * Returns NULL and sets errno on failure: EINVAL, ENOMEM.
 */
const struct tdt_node *tdt_trace_root(const struct tdt_trace *trace);

/* Return the parent of `node`, or NULL for the root. */
const struct tdt_node *tdt_node_parent(const struct tdt_node *node);

/* Return the first child of `node`, or NULL for a leaf. */
const struct tdt_node *tdt_node_first_child(const struct tdt_node *node);

/* Return the next child of the same parent, or NULL for the last one. */
const struct tdt_node *tdt_node_next_sibling(const struct tdt_node *node);

/*
 * Return the next node in depth-first order, parents first, or NULL after the last node.  Start
 * with the root.
 */
const struct tdt_node *tdt_node_next(const struct tdt_node *node);

/* Return the frame, task or cut that the node stands for.  The result is NULL only if `node` is. */
const struct tdt_frame *tdt_node_frame(const struct tdt_node *node);

/* Return how many leaves waited exactly here: 0 for a frame that only leads to others. */
uint32_t tdt_node_leaves(const struct tdt_node *node);

/*
 * Return the number of the node in its trace.  The root is 0, every other node has a larger number
 * than its parent, and there are no gaps.
 */
uint32_t tdt_node_id(const struct tdt_node *node);

/*
 * The raw stacks.  These calls look up no names, and therefore also return the stacks of leaves
 * that are over. tdt_trace_stacks() returns how many stacks were captured.
 *
 * tdt_trace_stack() writes at most `max` PCs of stack `index`, innermost first, to `pcs` (may be
 * NULL if `max` is 0).  It returns how many PCs the stack has, or 0 if there is no such stack.  If
 * the stack ends before the traced future, `*cut` says why; otherwise it is TDT_CUT_NOT.  `cut` may
 * be NULL.  A trace that was built, not captured, has no raw stacks.
 */
uint32_t tdt_trace_stacks(const struct tdt_trace *trace);
size_t tdt_trace_stack(const struct tdt_trace *trace, uint32_t index, uint64_t *pcs, size_t max,
		       enum tdt_cut *cut);

/*
 * Build a trace by hand: to read one from a file, or to join two traces.  The caller sets
 * `info->size`, with the rules of struct tdt_task_attr.  `info` and its strings are copied.
 * `leaves` keeps its value, whatever is added later.
 *
 * Returns a trace, which the caller frees with tdt_trace_free().  On failure it returns NULL and
 * sets errno: EINVAL (`info` is NULL, or has no size or an unknown state), E2BIG, ENOMEM.
 */
struct tdt_trace *tdt_trace_new(const struct tdt_task_info *info);

/*
 * Add `frame` under `parent` (NULL: the root), and add `leaves` to the number of leaves that wait
 * there.  The caller sets `frame->size`, with the rules of struct tdt_task_attr.  If `parent`
 * already has a child for the same frame, the call uses that child.  Strings are copied;
 * `module_offset`, `pc` and the other numbers are taken as they are.
 *
 * Returns the node.  On failure it returns NULL, sets errno, and leaves the trace as it was: EINVAL
 * (`kind` is TDT_NODE_TASK or unknown; a cut has no known `cut`, or a frame has one; there is no
 * size; `parent` belongs to another trace; or the trace was captured, not built), ENOMEM, E2BIG,
 * EOVERFLOW (a node cannot count so many leaves).
 */
const struct tdt_node *tdt_trace_add(struct tdt_trace *trace, const struct tdt_node *parent,
				     const struct tdt_frame *frame, uint32_t leaves);

TDT_DECLS_END

#endif
