/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_RECORDING_H
#define TDT_RECORDING_H /* stable from 1.0: docs/compatibility.md */

/*
 * The layout of a recording of the flight recorder (tdt/recorder.h), for readers of all kinds: the
 * process itself, a debugger, a reader of core files, a program that reads another process's
 * memory, and a program that reads the file of a process that is gone.
 *
 *   recording ─▶ rings: a table of rings   ─▶ slot, slot, slot...    the events
 *    │
 *    └▶ stacks: a table of distinct stacks ◀─ events refer to these
 *
 * What this page calls an *offset* is a number of bytes from the beginning of the recording.  A
 * recording is found in a file to which a process records (TDT_RECORD_DIR), in a snapshot
 * (tdt_recorder_snapshot()), in the memory of a process and in its core file.  In memory, the slots
 * of a ring lie at `address`, apart from the rest; everything else lies at its offset from the
 * header.  The field `rings` of struct tdt_registry (tdt/layout/registry.h) is the address of the
 * header, and 0 if the process does not have a recording.
 *
 * The structs below are the whole specification.  All numbers have the byte order of the process,
 * and each field is aligned to its own size, except where a payload is described.  A number after
 * `@` is the offset of the field in its struct.  Reserved fields are 0 until a later version of the
 * library gives them a meaning.
 *
 * Time
 *
 * Times are in *ticks* of the clock that `clock` names.  Events of the kind TDT_EVENT_CLOCK say
 * which time of the system's clocks a tick corresponds to; they are written about once a second.
 * Between two of them, and outside the first and the last one, a reader interpolates linearly.
 *
 * Rings
 *
 * One thread at a time writes to a ring.  The slots are written one after the other, and the newest
 * slot overwrites the oldest one: slot number i (from 0) lies at index i % `room`.  An event
 * occupies one slot, or several slots that follow each other: then the others have the kind
 * TDT_EVENT_MORE, and their `text` fields together are the *payload* of the event.
 *
 *	1. Read `head`, h1, and `room`.
 *	2. Copy the slots.
 *	3. Read `head` again, h2, and `room`.  If `room` is another one, begin again.  The slots
 *	   from number h2 + TDT_EVENT_SLOTS_MAX - room up to h1 - 1 are whole; so are all slots
 *	   below h1, if h2 + TDT_EVENT_SLOTS_MAX <= room.  Discard the others, and those below
 *	   `first`, which is read after the slots.  (In a process that is stopped or gone h2 is
 *	   h1; in a snapshot `first` alone says what is whole.)
 *	4. Discard slots of the kind TDT_EVENT_MORE at the beginning: the event that they belong to
 *	   was overwritten.
 *
 * The events of a ring are in the order in which they were written.  A poll is written when it
 * ends, with the time when it began.
 *
 * A ring may become larger while its thread writes: then `room` doubles at a time at which the
 * slots that are left lie where they belong in the larger ring.
 *
 * A ring is given to another thread when its thread has ended, or has got a larger one.  Each
 * thread begins with an event of the kind TDT_EVENT_THREAD.  Events before the first such event
 * that can still be read belong to the thread that this event names as its predecessor; if there
 * is none, to `thread`.
 *
 * Memory that cannot be trusted
 *
 * A file may be damaged, and names may contain any bytes.  A reader must check that all that it
 * reads lies inside the block, that `room` is a power of two, and that the number of slots of an
 * event, the number of return addresses of a stack and the length of a list of stacks are limited.
 */

#include <stdint.h>

#include <tdt/decls.h>

TDT_DECLS_BEGIN

#define TDT_RECORDING_MAGIC "tdt-rec" /* and a NUL: 8 bytes */
#define TDT_RECORDING_VERSION 2

/*
 * How the process ended.  A process that is killed cannot say so, and its fatal signals are its own
 * business: which signal it was says the kernel, to the parent and in a core file.
 */
enum tdt_recording_end {
	TDT_RECORDING_END_UNKNOWN = 0, /* it runs; or it was ended by a signal, _exit() or exec */
	TDT_RECORDING_END_EXIT = 1     /* it called exit(), or main() returned */
};

enum tdt_recording_clock {
	TDT_RECORDING_MONOTONIC = 1, /* nanoseconds of CLOCK_MONOTONIC */
	TDT_RECORDING_TSC = 2,       /* the time stamp counter of x86-64 */
	TDT_RECORDING_CNTVCT = 3     /* the virtual counter of aarch64 */
};

/* The beginning of the block: 256 bytes. */
struct tdt_recording {
	char magic[8];          /* @0   TDT_RECORDING_MAGIC */
	uint32_t version;       /* @8   TDT_RECORDING_VERSION */
	uint32_t size;          /* @12  sizeof(struct tdt_recording) */
	uint64_t bytes;         /* @16  of the whole recording, as far as it lies at offsets; in a
				    file it grows */
	uint64_t rings;         /* @24  offset of the table of rings */
	uint32_t n_rings;       /* @32  the number of its entries */
	uint32_t ring_size;     /* @36  sizeof(struct tdt_recording_ring) */
	uint64_t stacks;        /* @40  offset of the struct tdt_recording_stacks; 0: none */
	uint32_t pid;           /* @48  getpid(2) of the process that records */
	uint32_t clock;         /* @52  enum tdt_recording_clock */
	uint64_t start_ticks;   /* @56  when the block was made: in ticks, */
	uint64_t start;         /* @64  in nanoseconds of CLOCK_MONOTONIC, */
	uint64_t start_boot;    /* @72  of CLOCK_BOOTTIME, */
	uint64_t start_real;    /* @80  and of CLOCK_REALTIME */
	uint64_t hz;            /* @88  ticks in a second, as far as it was known at the start */
	uint64_t long_poll;     /* @96  polls of at least so many nanoseconds are remarkable */
	uint64_t long_wait;     /* @104 so are waits for a worker of so many nanoseconds */
	uint64_t missed;        /* @112 events that were not recorded, because no ring was left */
	uint64_t missed_polls;  /* @120 as many of them were polls */
	uint32_t stack_every;   /* @128 every so many polls of a thread one is captured; 0: none */
	uint32_t recording;     /* @132 1: events are being recorded; 0: the recorder was stopped */
	char library[16];       /* @136 the version of the library as text, ends with NUL */
	char program[32];       /* @152 the name of the process, ends with NUL */
	uint64_t taken;         /* @184 a snapshot: when it was taken, in ticks; 0: this block is
				    the process's own, or was when it ended */
	uint64_t missed_last;   /* @192 when the last of the missed events was not recorded, in
				    ticks; 0: none was missed */
	uint64_t listed;        /* @200 when the last complete listing of live tasks began, in
				    ticks: each traced task that lived then has a TASK event
				    since; 0: there was none */
	uint64_t alive;		/* @208 when the process last showed that it lives: each second
				    while it records, in nanoseconds of CLOCK_BOOTTIME; 0: never */
	uint64_t pid_namespace; /* @216 in which `pid` is its number: the inode; 0: unknown */
	uint32_t end;		/* @224 enum tdt_recording_end */
	uint32_t reserved0;	/* @228 */
	uint64_t reserved[3];	/* @232 */
};

enum tdt_recording_ring_kind {
	TDT_RING_POLLS = 1,      /* of a thread that polls, or that has filled a small ring */
	TDT_RING_OTHERS = 2,     /* of a thread that has not polled: a small one */
	TDT_RING_REMARKABLE = 3, /* copies of the events that are remarkable, of the thread of the
				    ring of polls that precedes this one in the table */
	TDT_RING_SERVICE = 4     /* of the recorder itself: there are several, of clocks, of
				    modules, and of live tasks */
};

/* A ring: 128 bytes.  Those that change while events are written are in the first 64. */
struct tdt_recording_ring {
	uint64_t head;      /* @0   the number of slots that were written so far */
	uint64_t first;     /* @8   slots with a lower number are not whole */
	uint64_t slots;     /* @16  offset of the slot with index 0 */
	uint32_t room;      /* @24  the number of slots, a power of two; 0: there is no ring here
				    (yet) */
	uint32_t kind;      /* @28  enum tdt_recording_ring_kind */
	uint32_t thread;    /* @32  the id (gettid(2)) of the thread that writes, or wrote last;
				    0: none did */
	uint32_t most;      /* @36  the number of slots that the ring of such a thread may get */
	uint64_t task;      /* @40  the task that the thread polls now; 0: none.  (If the newest
				    POLL of the ring has this task and began at `since`, that
				    poll is over) */
	uint64_t since;     /* @48  when that poll began; if `task` is 0, since when the thread is
				    parked (0: it is not) */
	uint64_t own;       /* @56  private to libtdt */
	uint64_t address;   /* @64  in the memory of the process that records, and in its core
				    file: the address of the slot with index 0; 0: it lies at its
				    offset.  In a file it means nothing */
	uint32_t ready;     /* @72  private to libtdt */
	uint32_t reserved0; /* @76 */
	uint64_t reserved[6]; /* @80 */
};

/* The most slots of one event. */
#define TDT_EVENT_SLOTS_MAX 32

#define TDT_EVENT_TEXT 30 /* bytes of payload in a slot */

enum tdt_event_kind {
	TDT_EVENT_MORE = 0,
	TDT_EVENT_POLL = 1,
	TDT_EVENT_WAKE = 2,
	TDT_EVENT_SPAWN = 3,
	TDT_EVENT_END = 4,
	TDT_EVENT_PARK = 5,
	TDT_EVENT_WAIT = 6,
	TDT_EVENT_STACK = 7,
	TDT_EVENT_DELAY = 8,
	TDT_EVENT_USER = 9,
	TDT_EVENT_THREAD = 10,
	TDT_EVENT_CLOCK = 11,
	TDT_EVENT_MODULE = 12,
	TDT_EVENT_TASK = 13,
	TDT_EVENT_START = 14,
	TDT_EVENT_STOP = 15,
	TDT_EVENT_STATE = 16,
	TDT_EVENT_LOCK = 17,
	TDT_EVENT_RUN = 18,
	TDT_EVENT_LOST = 19,
	TDT_EVENT_CONTEXT = 20
};

#define TDT_EVENT_POLL_REQUESTED 8 /* a bit of `detail` */
#define TDT_EVENT_END_ABORTED 4    /* a bit of `detail` */
#define TDT_EVENT_TASK_BLOCKING 8  /* a bit of `detail` */

enum tdt_recorded_state {
	TDT_STATE_IDLE = 0,  /* not polled, and not woken since its last poll */
	TDT_STATE_WOKEN = 1, /* not polled, and woken since */
	TDT_STATE_POLLED = 2 /* being polled */
};

/*
 * The first slot of an event: 32 bytes.  What the fields mean, by kind:
 *
 * POLL    A poll of `task` from `time` on.  It lasted (uint64_t)a << (detail >> 4) * 4 ticks.
 *         detail & 3: what it returned, TDT_READY, TDT_PENDING or TDT_PANICKED.  detail & 4: the
 *         poll began when the thread's previous poll ended, as far as its runtime reported.
 *         detail & TDT_EVENT_POLL_REQUESTED: the poll was made for a request for a trace, and for
 *         nothing else.
 *         `b`: the CPU on which it ended; UINT16_MAX: unknown.  `c`: the id of the task that last
 *         woke this one; 0: none, or unknown.
 * WAKE    `task` was woken.  `c`: the task that was being polled on this thread; 0: none.
 *         `b`: the CPU.
 * SPAWN   `task` was made.  `c`: the address of its poll function.  Payload: an identity (see
 *         below).  detail & TDT_EVENT_TASK_BLOCKING: it is a call that may block (TDT_ATTR_BLOCKING
 *         in tdt/trace.h).
 * END     `task` has ended.  detail & 3: its outcome, TDT_READY, TDT_PANICKED, or TDT_PENDING if it
 *         was dropped.  detail & TDT_EVENT_END_ABORTED: it was aborted, by the task whose id is a +
 *         ((uint64_t)b << 32); 0: not by a task.  The rest as with SPAWN.
 * TASK    `task` lived at `time`.  The rest as with SPAWN.
 * PARK    The worker was idle from `time` on, for (uint64_t)a << (detail >> 4) * 4 ticks.
 *         `b`: the CPU on which it was woken.
 * WAIT    In the poll of `task` whose POLL follows in this ring, a leaf reported what it waits for.
 *         `detail`: enum tdt_wait_kind (tdt/tree.h).  `c`: the object.  `time`: the owner, a task's
 *         id; 0: none.  Payload: the object's name; without a name there is no payload.
 * STACK   `a`: a stack, as in struct tdt_recording_stacks.  If `time` is 0, a leaf of `task` waited
 *         there in the poll whose POLL follows in this ring; `b` is the leaf's number, from 0, and
 *         `c` the number of leaves of that poll.  Otherwise the poll of `task` that was going on at
 *         `time` on thread `c` was found there; such an event is in the ring of the service.
 * DELAY   The poll of `task` that began at `time` began `c` nanoseconds after the task was woken,
 *         or spawned, which is remarkable.
 * USER    The program's own event (TDT_PROBE() in tdt/probe.h), while `task` was polled (0: no
 *         task).  `b`: the CPU.  Payload: the provider and the name, each with a NUL, and then
 *         `detail` arguments: a byte with the type, TDT_USER_INT (8 bytes follow, signed),
 *         TDT_USER_UINT (8 bytes), TDT_USER_DOUBLE (8 bytes), TDT_USER_TEXT (text with a NUL).
 * THREAD  From here on the events of this ring are those of thread `a`.  `c`: the previous thread;
 *         0: none.  detail & 1: it is a worker.  Payload: the thread's name.
 * CLOCK   At `time` CLOCK_MONOTONIC was `task`, CLOCK_BOOTTIME was `c`.  Payload: 8 bytes,
 *         CLOCK_REALTIME.  All in nanoseconds.
 * MODULE  At `time` the code from address `task` up to address `c` belonged to a file.  Payload:
 *         8 bytes, what to subtract from an address to get the address in the file's symbol table;
 *         a byte with the number of bytes of the file's build-id; these bytes; the file's path
 *         with a NUL.
 * START   The recorder was started.    STOP   It was stopped.
 * STATE   `b`: what `task` did just after `time`, enum tdt_recorded_state.  Its last poll had
 *         begun, or the task had been spawned, at `c`, in nanoseconds of CLOCK_MONOTONIC.  detail:
 *         enum tdt_wait_kind, of the first leaf that reported a wait in that poll.  `a`: how many
 *         leaves did; of a task that was being polled, the thread.
 *         Payload: 8 bytes each, the polls so far; when the task was spawned, and when it was last
 *         woken (0: never), in nanoseconds of CLOCK_MONOTONIC; the id of the task that woke it; of
 *         the wait, the object and the owner; and 1 if that has ended without giving back the lock,
 *         so that the wait never ends.
 * LOCK    The lock at address `c` was handed to `task` (tdt_lock_hand()).
 * RUN     `task`, which tdt_task_new() made and no thread has entered, goes on (`detail` is 0), or
 *         waits (TDT_PENDING).  The runs of a task that is entered are POLLs.
 * LOST    `task` went on a second before `time`, or somewhat earlier, when it was polled for a
 *         request, and nobody had woken it (struct tdt_registry_lost in tdt/layout/registry.h).
 *         `c`: how long it had waited, in nanoseconds.
 * CONTEXT From `time` on `task` has another trace context (tdt_task_context()).  Payload: the 28
 *         bytes of the struct tdt_trace_context (tdt/context.h); none: it has no context any more.
 *         `c`: the task that was being polled on the thread that set it; 0: none.
 *
 * An *identity* is this payload: 8 bytes, the parent's id; 4 bytes, the line where the task was
 * spawned; 4 bytes, the column; the task's name with a NUL; the name of the file with a NUL; and
 * if the task has a trace context at that time, as a new one has which inherits it, 28 bytes as
 * with CONTEXT.  A name that is unknown is empty.  Texts that do not fit are cut.
 *
 * The service's ring contains START, STOP, CLOCK, MODULE, TASK, STATE, LOST, and STACK of polls
 * that were found going on.  The rings of what is remarkable contain THREAD, POLL, DELAY, END of
 * tasks that panicked, and TASK, WAIT and STACK that belong to such a POLL.
 */
struct tdt_event {
	uint8_t kind;   /* @0  enum tdt_event_kind */
	uint8_t detail; /* @1 */
	uint16_t b;     /* @2 */
	uint32_t a;     /* @4 */
	uint64_t time;  /* @8  in ticks */
	uint64_t task;  /* @16 a task's id */
	uint64_t c;     /* @24 */
};

/* A further slot of an event: 32 bytes. */
struct tdt_event_more {
	uint8_t kind;              /* @0  TDT_EVENT_MORE */
	uint8_t n;                 /* @1  how many bytes of `text` are payload */
	char text[TDT_EVENT_TEXT]; /* @2 */
};

enum tdt_user_type {
	TDT_USER_INT = 1,
	TDT_USER_UINT = 2,
	TDT_USER_DOUBLE = 3,
	TDT_USER_TEXT = 4
};

/*
 * The table of distinct stacks: this struct, the buckets of a hash table, and then stacks.  A
 * stack's number is its offset from the beginning of this struct, divided by 8.  Stacks are only
 * added: a stack that an event refers to stays as it is.
 */
struct tdt_recording_stacks {
	uint64_t bytes;     /* @0   of the table: all of it lies in so many bytes */
	uint64_t used;      /* @8   in bytes; may be more than `bytes` when the table is full */
	uint32_t n_buckets; /* @16  a power of two */
	uint32_t lost;      /* @20  stacks for which there was no room, and polls that were due to
				    be captured when no spare capture was left */
	/* uint32_t bucket[n_buckets]: the number of the newest stack in it; 0: none */
};

struct tdt_recording_stack {
	uint32_t next;    /* @0   the number of the next stack of the bucket; 0: none */
	uint16_t n;       /* @4   the number of return addresses */
	uint8_t cut;      /* @6   enum tdt_cut (tdt/tree.h): why the stack was truncated there */
	uint8_t reserved; /* @7 */
	uint64_t hash;    /* @8   of the addresses; bucket hash % n_buckets */
	/* uint64_t pc[n]: the innermost first, as they are on the stack */
};

TDT_DECLS_END

#endif
