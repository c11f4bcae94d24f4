/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_OUTSIDE_H
#define TDT_OUTSIDE_H /* stable from 1.0: docs/compatibility.md */

/*
 * The door: requests from outside the process.
 *
 * A reader outside the process, such as tdt(1), finds the tasks and their records in the memory of
 * the process (tdt/layout/registry.h).  The tree of a task that waits has to be captured in a poll,
 * so the reader has to request it.  The door is a socket through which it does so.  The reader
 * writes nothing into the memory of the process, and stops none of its threads.
 *
 * A program says tdt_listen(), or the environment says TDT_OUTSIDE=1; tdt_rt_new() of libtdt-rt
 * listens by itself.  TDT_OUTSIDE=0 refuses all readers, whatever the program calls.  A
 * set-user-ID program ignores TDT_OUTSIDE.
 *
 * The kernel decides who may come through the door: whoever may trace the process (ptrace(2)).
 *
 * This header is for the authors of readers.  It is all that a reader needs, besides
 * tdt/layout/registry.h; a reader contains no code of the library.
 *
 * Opening a connection
 *
 *	1. Find the registry and read its `door` and `door_inode`.  If `door_inode` is 0, nobody
 *	   listens, and `door` says why.  If `pid` of the registry is not the target's (in the
 *	   target's PID namespace), the target was made by a raw clone(2): nobody listens.
 *	2. Take the descriptor with the number `door` by pidfd_getfd(2).  The host may have closed
 *	   the door and opened something else under its number: go on only if fstat(2) says that it
 *	   is a socket (S_ISSOCK) with the inode `door_inode`.
 *	3. Make a pair of sockets: socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends).
 *	4. Send a struct tdt_outside_header with the kind TDT_OUTSIDE_HELLO through the door, and
 *	   with it one end of the pair (SCM_RIGHTS), with MSG_DONTWAIT | MSG_NOSIGNAL.  Then close
 *	   this end, and the descriptor of the door.
 *	5. Receive a struct tdt_outside_hello at the other end, which is the *connection*.  If the
 *	   connection ends instead, the process has no free descriptor for it.
 *
 * Requests and answers
 *
 * A message is one packet.  It begins with a struct tdt_outside_header, and has exactly `size`
 * bytes.  All reserved fields are 0.  Later releases with the same version append fields.  A
 * request that is shorter than the library knows it is extended with zeros, and what is longer must
 * be zero.  An answer has at least the fields below; a reader ignores the rest.  All numbers have
 * the byte order of the process, and each field is aligned to its own size; there are no addresses
 * in a request.
 *
 * Requests of one connection are answered one after the other, in the order of their coming.  Each
 * gets one answer of the same `kind` and `number`.  (Before the answer to TDT_OUTSIDE_TREES come
 * the trees.)  If `error` of the answer is not 0, the request was refused, and nothing was changed:
 *
 *   EPROTO           the message has another length than it says; or it is too short for a
 *                    header, and `kind` and `number` of the answer are 0
 *   EPROTONOSUPPORT  `version` is not TDT_OUTSIDE_VERSION: that of the answer is what the library
 *                    speaks
 *   EOPNOTSUPP       the `kind` is unknown
 *   EINVAL           a reserved field is not 0, or a field has a value that is not allowed
 *   E2BIG            a field that the library does not know is not 0
 *   EBUSY            of TDT_OUTSIDE_HELLO: there are TDT_OUTSIDE_CONNECTIONS connections already
 *   others           as described at the kinds
 *
 * An empty packet ends the connection.  Be ready to receive: if a reader does not receive an answer
 * within one second, or the trees within one second after the time of the request, the library ends
 * the connection.
 *
 * All that a connection has requested ends with it, however it ends: close(2), the death of the
 * reader, or the end of the process.  A reader may have several connections.
 *
 * Whether the target is hostile is for the reader to judge: check the size of what you receive, `n`
 * and all parents of a tree, and the kinds and names of waits.
 */

#include <stdint.h>

#include <tdt/decls.h>
#include <tdt/layout/registry.h>
#include <tdt/tree.h>

TDT_DECLS_BEGIN

#define TDT_OUTSIDE_VERSION 1

/* The most connections at a time. */
#define TDT_OUTSIDE_CONNECTIONS 8

/* The most bytes of a message. */
#define TDT_OUTSIDE_MESSAGE_MAX 65536

/* The most tasks that a request lists by their ids. */
#define TDT_OUTSIDE_IDS 128

/* In nanoseconds: the longest time that a request may take. */
#define TDT_OUTSIDE_TIMEOUT_MAX_NS 10000000000

/* The most bytes of a recording that a reader requests. */
#define TDT_OUTSIDE_RECORDING_MAX 1073741824

enum tdt_outside_kind {
	TDT_OUTSIDE_HELLO = 1,    /* header            → struct tdt_outside_hello */
	TDT_OUTSIDE_TREES = 2,    /* tdt_outside_trees → tdt_outside_tree..., tdt_outside_done */
	TDT_OUTSIDE_TREE = 3,     /* one of these trees */
	TDT_OUTSIDE_WATCH = 4,    /* struct tdt_outside_watch    → the same */
	TDT_OUTSIDE_RECORD = 5,   /* struct tdt_outside_record   → the same */
	TDT_OUTSIDE_COUNTERS = 6  /* header → struct tdt_outside_counters */
};

/* The beginning of each message: 32 bytes.  A refusal has nothing behind it. */
struct tdt_outside_header {
	uint32_t size;        /* @0   of the whole message */
	uint16_t version;     /* @4   TDT_OUTSIDE_VERSION */
	uint16_t kind;        /* @6   enum tdt_outside_kind */
	uint64_t number;      /* @8   picked by the reader; its answers have the same */
	int32_t error;        /* @16  of an answer: 0, or a positive errno; of a request: 0 */
	uint32_t reserved[3]; /* @20 */
};

struct tdt_outside_hello {
	struct tdt_outside_header header;
	uint64_t registry; /* @32  address of the struct tdt_registry whose tasks answer here */
	uint32_t pid;      /* @40  getpid(2): if this is not the target, end the connection */
	uint32_t features; /* @44  the lower half of `features` of the registry */
	char library[16];  /* @48  the version of the library as text, ends with NUL */
};

/*
 * Request fresh trees.  Each of the tasks is woken, so that its runtime polls it, and the stacks of
 * its leaves are captured in this poll.  The poll may find that the task can go on.  A suspended
 * fiber is not woken: its stack is read.
 *
 * A task that is being polled is not disturbed.  If the poll lasts, the answer for the task is
 * TDT_OUTSIDE_RUNNING, and the reader may read the stack of the thread by its own means.
 */
struct tdt_outside_trees {
	struct tdt_outside_header header;
	uint64_t timeout_ns; /* @32  the time for all of them: TDT_OUTSIDE_TIMEOUT_MAX_NS at most;
				     0: one second */
	uint32_t most;       /* @40  the most tasks to request; 0: 1,000.  Of all tasks, fibers and
				     tasks without a future come last: they need no request */
	uint16_t n_ids;      /* @44  the number of `ids`; 0: all tasks that have not ended */
	uint16_t unseen;     /* @46  1: pass over the tasks that wait, were not woken, and whose
				     last watched tree (tdt/watch.h) is of their last poll: the
				     reader can read that tree, and a request might change what
				     there is to be seen */
	uint64_t ids[TDT_OUTSIDE_IDS]; /* @48  the tasks; the rest is 0.  Ids of tasks that have
				     ended, or never were, are passed over */
};

/*
 * What came of the request for one task.  Of a task that was not answered for, what its record says
 * is true, and its last tree, if it has one.
 */
enum tdt_outside_answer {
	TDT_OUTSIDE_FRESH = 1,   /* the tree is of a poll that this request brought, or of a stack
				    that was read for it */
	TDT_OUTSIDE_RUNNING = 2, /* no tree: the task is in a poll that lasts */
	TDT_OUTSIDE_NONE = 3,    /* no tree: the task was not polled in time */
	TDT_OUTSIDE_ENDED = 4    /* no tree: the task has ended */
};

/*
 * One message for each of the tasks, in any order.  `n` struct tdt_registry_entry of the tree
 * follow, and then `n_waits` struct tdt_outside_wait: what the leaves waited for, as they have
 * reported it in that poll.  A tree with more entries than fit in TDT_OUTSIDE_MESSAGE_MAX
 * bytes is cut off, as one that is too large for a watched tree (TDT_CUT_LIMIT); of the waits, the
 * first ones are there that fit behind it.  The task's state, and how long it had been in this
 * state, are in its record; `gap` of the tree is the time from the beginning of the previous poll.
 */
struct tdt_outside_tree {
	struct tdt_outside_header header;
	uint64_t id;       /* @32  of the task */
	uint64_t record;   /* @40  the address of its struct tdt_task_record */
	uint32_t answer;   /* @48  enum tdt_outside_answer */
	uint32_t outcome;  /* @52  how the poll of a fresh tree ended: TDT_PENDING (the task waits),
				   TDT_READY or TDT_PANICKED */
	uint16_t n_waits;  /* @56 */
	uint16_t wait_size; /* @58  sizeof(struct tdt_outside_wait): from one to the next */
	uint8_t astray;    /* @60  1: modules were unloaded meanwhile, the frames may be wrong */
	uint8_t known;     /* @61  enum tdt_leaves_known of a fresh tree (tdt/tree.h) */
	uint8_t moved;     /* @62  1: as in struct tdt_task_info; `gap` is how long the task had
				   waited */
	uint8_t reserved0; /* @63 */
	struct tdt_registry_tree tree; /* @64  without a tree, all is 0 */
	uint32_t entries;   /* @120 where the entries begin in the message; then come the waits */
	uint32_t reserved1; /* @124 */
};

/* What a leaf waited for: struct tdt_wait (tdt/tree.h) has the meaning of the fields. */
struct tdt_outside_wait {
	uint32_t kind;       /* @0   enum tdt_wait_kind */
	uint32_t futurelock; /* @4 */
	uint64_t object;     /* @8 */
	uint64_t owner;      /* @16 */
	char name[64];       /* @24  ends with NUL; empty: none */
	uint64_t handed_ns;  /* @88 */
};

/* The answer, after the trees. */
struct tdt_outside_done {
	struct tdt_outside_header header; /* `error` may be ENOMEM: there was no tree */
	uint32_t tasks;    /* @32  the number of tasks that were requested, and of messages */
	uint32_t fresh;    /* @36  of these, TDT_OUTSIDE_FRESH */
	uint32_t left_out; /* @40  tasks that were not requested because of `most`, but those that
				   need no request, or for lack of memory */
	uint32_t reserved; /* @44 */
};

/*
 * Request that the tasks are watched (tdt/watch.h) as long as the connection lasts.  The shortest
 * interval of all connections and of the program's own tdt_watch() is in force; so a reader can
 * make the watch no slower than the program wants it.  Errors: ENOMEM, EAGAIN (no thread).
 */
struct tdt_outside_watch {
	struct tdt_outside_header header;
	uint64_t interval_ns; /* @32  less than 1 ms counts as 1 ms; 0: this connection wants no
				      watch (any more).  Of the answer: what is in force now */
};

/*
 * Request that the flight recorder runs (tdt/recorder.h) as long as the connection lasts.  If it
 * runs already, for the program or for another connection, it goes on as it is.  It stops when
 * neither the program nor any connection wants it.  If the program starts the recorder meanwhile,
 * the options are the program's from then on, in new rings unless these are the same.
 *
 * The rings are found by `rings` of the registry.  Unless the program has made them, their memory
 * and their address space are given back when no connection wants them any more: read them before.
 *
 * Errors: ENOMEM, EAGAIN (no thread), EBUSY (another thread is just starting the recorder).
 */
struct tdt_outside_record {
	struct tdt_outside_header header;
	uint64_t ring_size;    /* @32  as in struct tdt_recorder_options, as are those below; 0: the
				       rings of the last recording, or if there was none, 16 MiB */
	uint64_t total_size;   /* @40  at most TDT_OUTSIDE_RECORDING_MAX, as is `ring_size` */
	uint64_t long_poll_ns; /* @48 */
	uint64_t long_wait_ns; /* @56 */
	uint32_t stacks;       /* @64  enum tdt_recorder_stacks */
	uint32_t every;        /* @68 */
	uint32_t on;           /* @72  1: record; 0: this connection wants no recording (any more);
				       the other fields are 0 then */
	uint32_t by_program;   /* @76  of the answer: 1: the program itself wants it.  Of the
				       request: 0 */
};

/* What tdt_counters() says: see tdt/counters.h. */
struct tdt_outside_counters {
	struct tdt_outside_header header;
	uint64_t waiting;         /* @32 */
	uint64_t runnable;        /* @40 */
	uint64_t running;         /* @48 */
	uint64_t longest_wait_ns; /* @56 */
	uint64_t longest_poll_ns; /* @64 */
	uint64_t spawned;         /* @72 */
	uint64_t ended;           /* @80 */
	uint64_t panicked;        /* @88 */
	uint64_t polls;           /* @96 */
	uint64_t captures;        /* @104 */
	uint64_t dumps;           /* @112 */
};

TDT_DECLS_END

#endif
