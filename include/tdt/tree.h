/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_TREE_H
#define TDT_TREE_H

/*
 * Walk a trace: what it says of the task, its call tree with names, and the raw stacks it was made of.  The printers
 * know nothing more than this header.
 *
 *	static void show(const struct tdt_node *node, int depth)
 *	{
 *		const struct tdt_frame *frame = tdt_node_frame(node);
 *
 *		printf("%*s%s\n", depth * 2, "", frame->function != NULL ? frame->function : "?");
 *		for (node = tdt_node_first_child(node); node != NULL; node = tdt_node_next_sibling(node))
 *			show(node, depth + 1);
 *	}
 *	...
 *	show(tdt_trace_root(trace), 0);
 *
 * (A tree is as deep as the stack was: code that may meet deep ones should use tdt_node_parent() instead of recursion.)
 *
 * Where a trace or a node is NULL, these calls return NULL or 0 and set errno to EINVAL.  All that they
 * return belongs to the trace and lives as long as it.  A trace may be read by several threads at once;
 * building and freeing want it for themselves.  Nothing here is async-signal-safe.
 */

#include <tdt/trace.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

struct tdt_node;

/* What the task was found doing. */
enum tdt_task_state {
	TDT_TASK_WAITING = 0, /* the poll returned TDT_PENDING: the tree shows what for.  Printed as "pending" */
	TDT_TASK_RUNNING = 1, /* in the middle of a poll: the tree is the stack of that poll */
	TDT_TASK_READY = 2,   /* the poll that was to answer ended the task */
	TDT_TASK_PANICKED = 3 /* the same, with TDT_PANICKED */
};

/* What a leaf may wait for: see tdt_leaf_waits_on(). */
enum tdt_wait_kind {
	TDT_WAIT_UNKNOWN = 0,
	TDT_WAIT_TASK = 1,    /* the end of a task: `owner` */
	TDT_WAIT_MUTEX = 2,   /* a lock: `owner` holds it */
	TDT_WAIT_CHANNEL = 3, /* a value from a channel */
	TDT_WAIT_TIMER = 4,   /* a point in time */
	TDT_WAIT_IO = 5,      /* a socket, a file, a process: `object` is the descriptor, if there is one */
	TDT_WAIT_OTHER = 6
};

/* What a leaf waits for. */
struct tdt_wait {
	enum tdt_wait_kind kind;
	uint64_t object; /* tells one mutex from another: its address, or the descriptor; 0: unknown */
	uint64_t owner;  /* the id of the task it hangs on; 0: none, or not known */
};

/*
 * What is said of a task, by its trace or its record (tdt/tasks.h).  Later versions may add fields at the end.  Times
 * are by the clock its runtime gives (tdt_worker_now()); without one they are some milliseconds coarse.
 */
struct tdt_trace_info {
	size_t size; /* sizeof(struct tdt_trace_info) of the library that filled it in */
	uint64_t id;
	const char *name; /* NULL: none */
	const char *file; /* where it was spawned; NULL: unknown */
	uint32_t line;
	uint32_t column; /* 0: unknown */
	enum tdt_task_state state;
	uint32_t leaves;           /* in the tree; 0: the poll cloned no waker, so nothing says what
				      it waits for.  Until tdt_trace_root() has found the names:
				      all that were captured */
	uint32_t leaves_elsewhere; /* wakers cloned on other threads during the poll: not in the tree */
	uint32_t leaves_lost;      /* stacks dropped for want of memory, or of room (tdt/watch.h) */
	uint64_t state_ns;         /* how long it had been in its state, by the clock its runtime gives; polls made only
				      to answer a request don't count as the end of a wait */
	uint64_t polls;            /* polls of the task so far, the one that answered included */
	uint64_t parent;           /* the id of the task that spawned it; 0: none */
	uint64_t woken_ns;         /* how long before it was last woken; 0: never, or its runtime doesn't tell */
	uint64_t woken_by;         /* the id of the task that woke it; 0: none, or not known */
	uint64_t age_ns;           /* how old the tree is: 0 for one that was just asked for (tdt/watch.h) */
	uint64_t polls_since;      /* polls that began after that */
	uint32_t thread;           /* TDT_TASK_RUNNING: the id of the thread that polls it (gettid(2)); else 0 */
	uint32_t n_waits;
	const struct tdt_wait *waits; /* what its leaves wait for, as far as they tell; NULL: none does */
	const char *syscall;       /* TDT_TASK_RUNNING: the system call the thread is blocked in; NULL: none */
	uint32_t leaves_unsure;    /* so many of `leaves` are at places where some may be over, since
				      the task may have gone on in the same poll; 0: none is in
				      doubt.  See "Leaves that are over" in tdt-trace(5).  Set when
				      the names are known */
};

/*
 * The facts that a trace has of its task.  Never NULL, unless `trace` is.  Once tdt_trace_root() has found
 * the names, this call returns another struct than before, with the leaves counted anew; the old
 * one stays valid.  (A call of a struct's name, as stat(): C++ wants the struct with `struct`
 * before it, and g++ -Wshadow would warn.)
 */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
const struct tdt_trace_info *tdt_trace_info(const struct tdt_trace *trace);
#pragma GCC diagnostic pop

/* What a node of the tree stands for. */
enum tdt_node_kind {
	TDT_NODE_TASK = 0,  /* the root: the task itself */
	TDT_NODE_FRAME = 1, /* a function that waits for its children; with no children, a leaf */
	TDT_NODE_CUT = 2    /* frames are missing between this node's parent and its children: `cut` says why */
};

enum tdt_cut {
	TDT_CUT_NOT = 0,
	TDT_CUT_LIMIT = 1,    /* more frames than the limit (struct tdt_backtrace_options; tdt/watch.h), or, of a poll
				 that runs, more than 1 MiB of stack, or 16 stacks (tdt/coroutine.h) */
	TDT_CUT_NO_INFO = 2,  /* a frame with neither unwind information nor a frame pointer to go on by */
	TDT_CUT_CORRUPT = 3,  /* the next frame would lie outside the stack: overwritten, or wrong unwind information */
	TDT_CUT_STACK = 4,    /* the leaf was polled, or the poll runs, on another stack than the traced future, and
				 the way there was not told (tdt_stack_enter()) */
	TDT_CUT_MEMORY = 5,   /* no memory to record more frames */
	TDT_CUT_UNSUPPORTED = 6 /* a frame whose unwind information can't be followed: it goes by a
				   register that is not known there, or the library doesn't
				   understand it */
};

/*
 * One frame.  A string is NULL and a number 0 where nothing is known.  Frames that the compiler inlined are nodes of
 * their own, with the PC of the function they were inlined into and no symbol.  Later versions may add fields at the
 * end.
 */
struct tdt_frame {
	size_t size;             /* sizeof(struct tdt_frame), of the library that lends it or of who adds it */
	enum tdt_node_kind kind;
	enum tdt_cut cut;
	uint64_t pc;             /* of a frame: as the stack has it, the return address (0 in a task and a cut); of the
				    innermost of a poll that runs, one more than where it is: so a name is always
				    to be looked up at pc - 1 */
	const char *function;    /* its name, demangled; from debug information or else from the symbol table */
	const char *file;        /* the source file's full path */
	const char *directory;   /* where that unit was compiled: a prefix of `file` that short paths leave out */
	uint32_t line;
	uint32_t column;
	const char *module;      /* path of the executable or library */
	uint64_t module_offset;  /* of the PC, from the module's load address */
	const char *symbol;      /* the ELF symbol the PC lies in, as it stands there (mangled) */
	uint64_t symbol_offset;  /* of the PC in it: tracers print symbol+0xoffset */
	const char *build_id;    /* of the module, in hexadecimal */
	uint8_t inlined;         /* this function was inlined into its parent node's */
	uint8_t guessed;         /* the way to the next outer frame is not sure, and callers may be missing there: it
				    went by frame pointer, or by what looks like one (of a thread that is blocked),
				    or modules were unloaded meanwhile */
	uint8_t unnamed;         /* its names were not found in time: nothing but module and offset is known */
	const char *const *also; /* what else the function may be called: compilers and linkers fold
				    functions with the same code into one.  At most 4 names, then
				    NULL.  Names that are weak, or that C reserves for libraries, are
				    taken for aliases and left out; and so are all names where no
				    debug information describes the function.  NULL: none */
};

/*
 * The root of the tree: the task itself, whose children are the outermost functions.  Siblings are in the order they
 * were first seen.  Frames are one node if their PC and their parents are; frames of one function, line and column
 * under one parent are one too (a compiler may make several calls of one), with the PC that was seen first.
 *
 * The first call has the names looked up, through libdw, by a thread of the library's ("tdt-names", all signals
 * blocked), and waits for them, 5 seconds at most: a millisecond or more for the first trace of a process, some tens if it
 * leads through a unit of thousands of functions.  Frames whose names are not found by then (a stalled file system, huge
 * debug information) are marked as `unnamed`, and stay so in this trace; a later trace may find them.  Where no thread can
 * be started the names are looked up by the caller itself, with no limit.  No other call looks names up but those that
 * print, so a thread that polls never waits for names, unless it asks for them itself.
 *
 * A frame whose module has no debug information, or is gone, has what could be found.  Debug files are looked for by
 * build-id and beside the module; with TDT_DEBUGINFOD=1 and DEBUGINFOD_URLS set in the environment libdw also asks those
 * servers (for which it calls dlopen(), and may wait for the loader).  NULL and errno: EINVAL, ENOMEM.
 */
const struct tdt_node *tdt_trace_root(const struct tdt_trace *trace);

const struct tdt_node *tdt_node_parent(const struct tdt_node *node);       /* NULL for the root */
const struct tdt_node *tdt_node_first_child(const struct tdt_node *node);  /* NULL for a leaf */
const struct tdt_node *tdt_node_next_sibling(const struct tdt_node *node); /* NULL for the last */

/* The next node in depth-first order, parents first; NULL after the last.  Start with the root. */
const struct tdt_node *tdt_node_next(const struct tdt_node *node);

/* What the node stands for.  Never NULL, unless `node` is. */
const struct tdt_frame *tdt_node_frame(const struct tdt_node *node);

/* How many leaves waited just here: 0 for a frame that only leads to others. */
uint32_t tdt_node_leaves(const struct tdt_node *node);

/* A number of the node in its trace: the root is 0, every other comes after its parent, and there are no gaps. */
uint32_t tdt_node_id(const struct tdt_node *node);

/*
 * The raw stacks, with no look-up of names, and so those of leaves that are over, too: how many
 * were captured, and the PCs of stack `index`, innermost first.  Writes at most `max` of them to
 * `pcs` (may be NULL if `max` is 0) and returns how many there are; 0 if there is no such stack.
 * `cut` (may be NULL) is set to why the stack ends before the traced future, if it does.  A trace
 * that was built, not captured, has no raw stacks.
 */
uint32_t tdt_trace_stacks(const struct tdt_trace *trace);
size_t tdt_trace_stack(const struct tdt_trace *trace, uint32_t index, uint64_t *pcs, size_t max, enum tdt_cut *cut);

/*
 * Build a trace by hand: to read one from a file, or to join two.  `info` and its strings are copied (its `size` is set
 * by the caller, with the rules of struct tdt_task_attr); `leaves` stays what it says, whatever is added later.  NULL
 * and errno: EINVAL (`info` is NULL, has no size or an unknown state), E2BIG, ENOMEM.
 */
struct tdt_trace *tdt_trace_new(const struct tdt_trace_info *info);

/*
 * Add `frame` (its `size` set, with the rules of struct tdt_task_attr) under `parent` (NULL: the root) and count
 * `leaves` more leaves that wait there.  If `parent` has a child that is the same frame, that is the one.  Strings are
 * copied; `module_offset`, `pc` etc. are taken as they are.  Returns the node, or NULL and errno, with the trace as it
 * was: EINVAL (kind is TDT_NODE_TASK or unknown; a cut without a known `cut`, or a frame with one; no size; `parent` is
 * of another trace; the trace was captured, not built), ENOMEM, E2BIG, EOVERFLOW (a node can't count so many leaves).
 */
const struct tdt_node *tdt_trace_add(struct tdt_trace *trace, const struct tdt_node *parent,
				     const struct tdt_frame *frame, uint32_t leaves);

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
