/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_REGISTRY_H
#define TDT_REGISTRY_H /* stable from 1.0: docs/compatibility.md */

/*
 * The layout of the task records in the memory of a process, for readers outside the process: a
 * debugger, a reader of core files, or a program that reads another process's memory
 * (process_vm_readv(2)) and contains no code of this library.  Inside the process use tdt/tasks.h.
 *
 *   registry ─▶ slab ─▶ slab ─▶ ... ─▶ 0
 *    │           │
 *    │           └▶ record, record, record...        `stride` bytes apart
 *    │                │
 *    │                └▶ watched: the last tree, and the one before
 *    ├▶ counters: a few structs, whose sums count
 *    ├▶ threads:  a table of addresses of threads' structs
 *    ├▶ panics:   the last tasks that panicked
 *    ├▶ holders:  the last tasks that ended with a lock
 *    ├▶ lost:     the last lost wake-ups
 *    └▶ misuse:   how the library was misused, if it was
 *
 * The structs below are the whole specification.  All numbers have the byte order of the process,
 * and each field is aligned to its own size.  A number after `@` is the offset of the field in its
 * struct.  All addresses are 64 bits wide, and are addresses in the process that is read; 0 means
 * that there is nothing.  Times are in nanoseconds of CLOCK_MONOTONIC unless a field says
 * otherwise.
 *
 * Later releases of the library that have the same version give a meaning to fields that are
 * reserved here, which are 0 until then, and append fields to the registry, the records, the
 * panics, the lost wake-ups, and the structs of threads and of fibers: `size`, `record_size`,
 * `panic_size`, `lost_size`, `thread_size` and `fiber_size` are at least those of the structs
 * below.  A reader goes from record to record by `stride`, from panic to panic by `panic_size`,
 * and reads the fields that it knows; of a library that is older than the reader it takes those
 * for 0 that lie behind these sizes.
 *
 * Finding the registry
 *
 * No symbol leads to the registry.  Search for it: it lies in the initialized data of the module
 * that contains the library (libtdt.so, or the program or library that was linked with libtdt.a).
 *
 *	1. In a process, look at each mapping in /proc/PID/maps that is readable, writable and
 *	   private and has an inode.  In a core file, look at each PT_LOAD segment that is
 *	   readable and writable.
 *	2. At each address in it that is a multiple of 64, compare 8 bytes with TDT_REGISTRY_MAGIC.
 *	3. Where they are equal, read the whole struct.  Ignore it unless `self` is the address
 *	   where you found it: it is a copy otherwise, for example of a file.
 *	4. If `version` is not TDT_REGISTRY_VERSION, the rest of the struct has another layout.
 *
 * A process may contain several copies of the library, and then has a registry for each of them.
 * (A module with libtdt.a in it that dlclose() removes takes its registry along.  Do not do this:
 * slabs of this registry are then found by nobody.)
 *
 * Nothing else that a reader can reach is ever unmapped, except the structs of threads: slabs
 * stay, and records and trees are used again for other tasks.
 *
 * A core file contains all of this.  What lies together in memory may be in several PT_LOAD
 * segments of the file.  `file` and `poll` mostly point into read-only parts of modules, which a
 * core file may leave out; read those parts from the files that were mapped there (NT_FILE).  In a
 * core file, or in a process that is stopped, read each record once; if its `seq` is odd, its task
 * was just being made.
 *
 * Reading a record while the process runs
 *
 *	1. Read all of it, all of it again, and `seq` once more.  (One process_vm_readv(2) can do
 *	   so, with three remote vectors.)
 *	2. If `seq` was not the same three times, the record was given to another task meanwhile:
 *	   start again.
 *	3. Use the second copy.  If its `seq` is odd, or its `state` is TDT_TASK_RECORD_FREE, the
 *	   record has no task, or not yet.
 *
 * All of the second copy is of one task, since it was made between two looks at `seq`.  If the two
 * copies are the same to the last byte, all fields were so at one moment.  (So a whole slab may be
 * read twice, and only those records by these steps whose copies differ.)  The copies of a task
 * that is polled all the time may never be the same.  In such a copy, the fields that the task was
 * made with are right (`id`, `parent`, `spawned`, `poll`, `child_state`, `file`, `line`, `column`,
 * `name`).  Each other field has a value that it had at some moment, but the fields may be of
 * different polls, so do not use the `wait_*` fields.
 *
 * It is known what a leaf waits for if `state` is TDT_TASK_RECORD_IDLE, `wait_count` is not 0, and
 * `wait_polls` is the lower half of `polls`.  If more than one leaf has reported, this is the first
 * report about a lock, else the first one about a task, else the first one.  A mutex may have been
 * handed on to another owner since.
 *
 * The string at `wait_name` belongs to the host.  It stays as it is while the leaf waits.  Read at
 * most TDT_TASK_RECORD_NAME_SIZE bytes of it, and then the record again.  Use the string only if
 * `seq`, `state`, `polls` and `wait_name` are the same as before.
 *
 * A task whose `state` is TDT_TASK_RECORD_IDLE is *runnable* if `woken` is not 0 and `woken_polls`
 * is the lower half of `polls`: it was woken since its last poll began.  If `polls` is 0, it was
 * not polled yet.  Otherwise the task waits, as far as its runtime reports wake-ups.
 *
 * Read a slab anew for each look: `used` increases, and new slabs are inserted before the first
 * one.  A child of fork() has the records of its parent.  Among them are tasks that no thread of
 * the child will ever poll.  If such a task was being polled at the fork, its record says so for
 * ever.
 *
 * Reading the last tree of a task
 *
 * The last tree of a task that is or was watched (tdt/watch.h) lies at the record's `tree`.  While
 * a tree is written, the previous one stays, so there is always one whole tree, in a core file too.
 * To read it while the process runs:
 *
 *	4. Read `published` of the struct tdt_registry_watched at `tree`: p.
 *	5. Read tree p % 2.
 *	6. Read `published` again.  If it is not p, the tree may be torn: go back to 4.
 *	7. Read the record's `tree` and `seq` again.  If they changed, the tree may be another
 *	   task's: go back to 1.
 *
 * (A tree is written at most once in an interval, so these steps rarely have to be repeated.)
 *
 * Fibers
 *
 * A task whose record has a `poll` of 0 is a fiber: a coroutine that is resumed, not polled
 * (tdt/integrate/fiber.h).  `polls` counts how often it was resumed, `since` is when that was, and
 * TDT_TASK_RECORD_POLLING means that it runs.  To read the stack of a suspended fiber while the
 * process runs:
 *
 *	1. Read the record as above, until two copies are the same.  Go on if `state` is
 *	   TDT_TASK_RECORD_IDLE and `suspended_pc` is not 0.
 *	2. Read the struct tdt_registry_fiber at `child_state`.  If `moves` is odd, go back to 1.
 *	3. Read the stack, from `suspended_sp` up to `stack_top`, or if that is 0, up to `low` +
 *	   `size`.  If `moved_to` is not 0, read the bytes that belong at `moved_from` from there.
 *	4. Read the record and the struct again.  If `seq`, `state`, `polls` or `moves` changed, the
 *	   fiber has run or was moved meanwhile: go back to 1.
 *	5. Walk from the frame with the return address `suspended_pc`, the stack pointer
 *	   `suspended_sp` and the frame pointer `suspended_fp`.
 *
 * A traced future may also run on a coroutine (tdt_coroutine(), tdt_fiber_of()).  Then `poll` is
 * not 0, `stack_top` is that of the future's poll, and the struct is not to be found; the three
 * registers are right while the task is idle, and its stack ends where the unwinder says that it
 * does.
 *
 * Lists
 *
 * A task whose stack does not show where it waits may have a list of frames (tdt/integrate/leaf.h).
 * The list belongs to the host, who may change or free it as soon as the task goes on:
 *
 *	1. Read the record as above.  Go on if `state` is TDT_TASK_RECORD_IDLE and `leaf` is not 0.
 *	2. Read the struct tdt_leaf at `leaf`.  The list is in force if its `task` is the record's
 *	   `id`, and its `polls` is the record's `polls`.
 *	3. Read the arrays, and for TDT_LEAF_NAMED the strings, as much of it as you are willing to.
 *	4. Read the record again.  If `seq`, `state`, `polls` or `leaf` changed, the list may have
 *	   changed too: go back to 1.
 *
 * A task whose `poll` is `callback_poll` of the registry was made by tdt_task_new().  It waits for
 * nothing but its list.  While it runs (TDT_TASK_RECORD_POLLING), its stack can be read if
 * `stack_top` is not 0, up to and including the function whose frame ends there.  If the `polls` of
 * the list at `leaf` is then one less than the record's, the list says where the task came from.
 * The same holds for a task whose `poll` is TDT_TASK_RECORD_REPORTED, except that it has no list.
 *
 * Trace contexts
 *
 * A task may have a trace context (tdt/context.h), which may be taken away and given to another
 * task at any time.  To read it while the process runs:
 *
 *	1. Read the record as above.  Go on if `context` is not 0.
 *	2. Read the struct tdt_registry_context there, then the record's `context` and `seq`, and
 *	   then the struct's `seq` again.
 *	3. If the struct's `seq` is odd or has changed, or the record's `context` has, go back to 2
 *	   with the new one.  If the record's `seq` has changed, go back to 1.
 *
 * Counting
 *
 * Each field of the struct tdt_registry_counters is a part of a sum: add up that field of all
 * structs in the array.  To count the polls that began since the start, read the counters first,
 * and then add `polls` of every record that has a task.  To count the tasks that ended, subtract
 * from `spawned` the number of records with a task that has not ended, or whose `seq` is odd.  What
 * happens while you read may be missing, and is counted the next time.
 *
 * Memory that cannot be trusted
 *
 * The memory may be damaged, and names may contain any bytes.  In sound memory the list of slabs
 * has an end, no slab is in it twice, `used` is at most `room`, `stride` is at least
 * `record_size`, and no size is smaller than that of the structs below.  A reader must check these
 * facts, must limit the number of records, of slots and of entries that it is willing to read, and
 * must not print names unescaped (see tests/outside/registry_reader.c).
 */

#include <stdint.h>

#include <tdt/context.h>
#include <tdt/decls.h>

TDT_DECLS_BEGIN

#define TDT_REGISTRY_MAGIC "tdt-reg" /* and a NUL: 8 bytes */
#define TDT_REGISTRY_VERSION 1

/* The registry: 256 bytes, at an address that is a multiple of 64.  Only the library writes it. */
struct tdt_registry {
	char magic[8];         /* @0    TDT_REGISTRY_MAGIC */
	uint32_t version;      /* @8    TDT_REGISTRY_VERSION */
	uint32_t size;         /* @12   sizeof(struct tdt_registry) */
	uint64_t self;         /* @16   the address of this struct */
	uint64_t slabs;        /* @24   address of the first struct tdt_registry_slab; 0: no future
					was ever traced */
	uint32_t record_size;  /* @32   sizeof(struct tdt_task_record) */
	uint32_t stride;       /* @36   bytes from one record of a slab to the next */
	char library[16];      /* @40   the version of the library as text, ends with NUL */
	uint32_t pid;          /* @56   getpid(2), also in a child of fork(); 0: no future was ever
					traced */
	uint32_t thread_size;  /* @60   sizeof(struct tdt_registry_thread) */
	uint64_t start;        /* @64   when the library began its work in this process or in one
					that it was forked from */
	uint64_t start_real;   /* @72   the same moment in nanoseconds of CLOCK_REALTIME, to print
					times of day */
	uint64_t now;          /* @80   the time when the library last looked at the clock for this
					field: at each tick of a watch and at each dump; 0: never.
					In a core file, the latest time that is known is the latest
					of this field and all `since`, `woken` and `now` fields */
	uint64_t watch_ns;     /* @88   the interval of tdt_watch(); 0: off */
	uint64_t unloads;      /* @96   address of a uint64_t: how many modules had been unloaded
					when the library last asked the loader (dlpi_subs in
					dl_iterate_phdr(3)) */
	uint64_t counters;     /* @104  address of an array of struct tdt_registry_counters */
	uint32_t n_counters;   /* @112  the number of its structs */
	uint32_t n_threads;    /* @116  the number of the table's slots */
	uint64_t threads;      /* @120  address of a table of addresses of struct
					tdt_registry_thread */
	uint64_t panics;       /* @128  address of an array of struct tdt_registry_panic */
	uint32_t n_panics;     /* @136  the number of its structs */
	uint32_t panic_size;   /* @140  sizeof(struct tdt_registry_panic): from one to the next */
	uint64_t rings;        /* @144  address of the struct tdt_recording (tdt/layout/recording.h)
					of this process; 0: it has never recorded */
	uint64_t door_inode;   /* @152  the inode of the socket through which readers make requests
					(tdt/layout/outside.h); 0: there is none */
	uint32_t door;         /* @160  the number of its descriptor.  If there is none: 0, or a
					positive errno that says why, such as EPERM (TDT_OUTSIDE=0)
					or EMFILE */
	uint32_t fiber_size;   /* @164  sizeof(struct tdt_registry_fiber) */
	uint64_t misuse;       /* @168  address of a struct tdt_misuse (tdt/misuse.h), the first
					misuse of the library that was noticed, which stays as it
					is; 0: none was */
	uint64_t features;     /* @176  enum tdt_registry_feature: what the library reports.  A bit
				that is 0 tells a fact that is unknown from one that is not so */
	uint64_t callback_poll; /* @184 `poll` of tasks of tdt_task_new() (tdt/integrate/leaf.h) */
	uint64_t holders;      /* @192  address of n_holders structs tdt_registry_holder */
	uint32_t n_holders;    /* @200 */
	uint32_t holder_size;  /* @204  sizeof(struct tdt_registry_holder) */
	uint64_t lost;         /* @208  address of n_lost structs tdt_registry_lost */
	uint32_t n_lost;       /* @216 */
	uint32_t lost_size;    /* @220  sizeof(struct tdt_registry_lost): from one to the next */
	uint64_t reserved[4];  /* @224 */
};

/* Later versions add bits. */
enum tdt_registry_feature {
	TDT_REGISTRY_WAKES = 1,  /* `woken` and `woken_by`, as far as runtimes report wake-ups */
	TDT_REGISTRY_PARENTS = 2 /* `parent` may be another task than the spawning one */
};

struct tdt_registry_slab {
	uint64_t next;    /* @0   address of the next slab; 0: this is the last one */
	uint64_t records; /* @8   address of the first record */
	uint32_t used;    /* @16  the number of records that have been in use; records behind these
				  may contain anything */
	uint32_t room;    /* @20  the number of records for which the slab has room */
};

enum tdt_task_record_state {
	TDT_TASK_RECORD_FREE = 0,    /* no task */
	TDT_TASK_RECORD_IDLE = 1,    /* between two polls: the task waits, or is runnable */
	TDT_TASK_RECORD_POLLING = 2, /* in a poll, on `thread` */
	TDT_TASK_RECORD_ENDED = 3    /* ready, panicked or dropped; a handle of the task still
					exists */
};

#define TDT_TASK_RECORD_NAME_SIZE 64
#define TDT_TASK_RECORD_REPORTED 1 /* in `poll` */

/* The record of a task: 280 bytes. */
struct tdt_task_record {
	/* All that a poll reads and writes lies in the first 64 bytes, which are one cache line. */
	uint64_t waker;       /* @0   address of the waker (struct tdt_waker in tdt/future.h) that
				      the library holds to wake the task; 0: none, or unknown */
	uint64_t child_state; /* @8   `state` of the future that was traced; 0: none, or unknown.
				      Of a fiber, and of a task of tdt_task_new(): address of its
				      struct tdt_registry_fiber */
	uint32_t seq;         /* @16  odd while the record is passed from one task to another */
	uint32_t state;       /* @20  enum tdt_task_record_state */
	uint64_t polls;       /* @24  the number of polls that began, and of times that the task
				      went on without a poll (tdt/integrate/leaf.h) */
	uint64_t since;       /* @32  when the last poll began; before the first poll: when the task
				      was spawned */
	uint64_t poll;        /* @40  address of the poll function of the future that was traced; 0:
				      the task is a fiber (tdt/integrate/fiber.h);
				      TDT_TASK_RECORD_REPORTED: nobody traces it, its runtime
				      reports it (tdt_hook_spawn()) */
	uint64_t stack_top;   /* @48  where the stack of the poll begins: the frames of the poll's
				      functions lie below this address.  Of a fiber: where the
				      frames on its stack begin; 0: unknown.  0 if the task has
				      ended, and its future was dropped, too */
	uint32_t thread;      /* @56  the id (gettid(2)) of the thread that polls the task, or
				      polled it last; 0: none */
	uint16_t own_epoch;   /* @60  private to libtdt */
	uint8_t own_bits;     /* @62  bits 1 to 7: the number, modulo 128, of polls that were made
				      only for a request, and after which the task still waited;
				      bit 0 is private to libtdt */
	uint8_t own_request;  /* @63  bit 4: the task was aborted (tdt_task_abort()), by the task
				      `woken_by`; the other bits are private to libtdt */

	/* What is reported about wake-ups and waits. */
	uint64_t id;          /* @64 */
	uint64_t woken;       /* @72  when the task was last woken, if its runtime reports that
				      (tdt_task_woken()); 0: never */
	uint64_t woken_by;    /* @80  the id of the task that made that wake-up; 0: none */
	uint32_t woken_polls; /* @88  the low 32 bits of `polls` at that wake-up */
	uint32_t wait_polls;  /* @92  the low 32 bits of `polls` in the poll that reported what the
				      task waits for.  If `polls` differs now, `wait_*` is out of
				      date */
	uint64_t wait_object; /* @96  what a leaf of the task waits for: see tdt_leaf_waits_on() */
	uint64_t wait_owner;  /* @104 the id of a task */
	uint64_t wait_name;   /* @112 address of the name of the object, ends with NUL; 0: it has no
				      name */
	uint8_t wait_kind;    /* @120 enum tdt_wait_kind */
	uint8_t wait_count;   /* @121 the number of leaves of that poll that reported, at most
				      255 */
	uint8_t outcome;      /* @122 with TDT_TASK_RECORD_ENDED, how the task ended: TDT_READY,
				      TDT_PANICKED, or TDT_PENDING if it was dropped; before that,
				      private to libtdt */
	uint8_t own_hint;     /* @123 bit 7: the task is a part of `parent` (TDT_ATTR_CHILD in
				      tdt/trace.h); bit 6: it is a call that may block
				      (TDT_ATTR_BLOCKING); the others are private to libtdt */
	uint32_t own_fiber;   /* @124 private to libtdt */

	char name[TDT_TASK_RECORD_NAME_SIZE]; /* @128 UTF-8, ends with NUL; empty: none */

	uint64_t parent;      /* @192 the id of the task that spawned this one; 0: none */
	uint64_t spawned;     /* @200 when the task was spawned */
	uint64_t file;        /* @208 address of the name of the file where the task was spawned,
				      ends with NUL; 0: unknown */
	uint32_t line;        /* @216 in `file` */
	uint32_t column;      /* @220 */
	uint64_t tree;        /* @224 address of a struct tdt_registry_watched; 0: not watched */

	/*
	 * If `suspended_pc` is not 0 and the task is idle: the registers of the innermost frame of
	 * a stack that was switched away from.  The frame stands still until the task is polled or
	 * resumed, so an unwinder can begin with these registers.  See "Fibers" above.
	 */
	uint64_t suspended_pc; /* @232 a return address */
	uint64_t suspended_sp; /* @240 after that return */
	uint64_t suspended_fp; /* @248 */

	uint64_t context;     /* @256 address of a struct tdt_registry_context; 0: none.  See "Trace
				      contexts" above */
	uint64_t leaf;        /* @264 address of a struct tdt_leaf (tdt/integrate/leaf.h), the list
				      at which the task waits; 0: none.  See "Lists" above */
	uint64_t joiners;     /* @272 address of memory of a future that awaits this task's end;
				      0: none, or unknown */
};

/* The trace context of a task, or of several.  The struct stays, and is used again. */
struct tdt_registry_context {
	uint32_t own_next;  /* @0   this field and the next are private to libtdt */
	uint32_t own_index; /* @4 */
	struct tdt_trace_context context; /* @8 */
	uint32_t seq;       /* @36  odd while the struct is written; another value after each
				    change of it */
	uint32_t own_refs;  /* @40  private to libtdt */
	uint32_t reserved;  /* @44 */
};

/*
 * The stack of a fiber (tdt/integrate/fiber.h).  The struct stays where it is; when the fiber has
 * ended, it is given to another fiber.
 */
struct tdt_registry_fiber {
	uint64_t low;        /* @0   the lowest address of the stack; 0: unknown */
	uint64_t size;       /* @8   of the stack, in bytes; 0: unknown */
	uint64_t base;       /* @16  where the frames on the stack begin; 0: unknown */
	uint64_t moved_from; /* @24  while a part of the stack lies elsewhere: the bytes that belong
				     at this address */
	uint64_t moved_to;   /* @32  are found at this one; 0: the stack lies where it belongs */
	uint64_t moved_size; /* @40  so many bytes */
	uint64_t moves;      /* @48  odd while the struct is written; another value after each
				     change of it */
	uint64_t entry;      /* @56  address of the function that the task runs; 0: unknown */
};

/*
 * The trees of a task.  This struct is followed by tree 0, and then by tree 1.  Each tree occupies
 * sizeof(struct tdt_registry_tree) bytes and the bytes of `room` entries, whether or not all
 * entries are used.
 */
struct tdt_registry_watched {
	uint32_t own_next;  /* @0   this field and the next are private to libtdt */
	uint32_t own_index; /* @4 */
	uint32_t published; /* @8   the number of trees that were published.  The last one is the
				    tree with this number modulo 2 */
	uint32_t room;      /* @12  the most entries of a tree.  Constant, whichever task uses it */
};

/*
 * A call tree: the stacks of the leaves of one poll.  Frames that several leaves share have one
 * entry.  Each entry with leaves is the innermost frame of a stack, which goes on from entry to
 * parent.
 */
struct tdt_registry_entry {
	uint64_t pc;     /* @0   the return address, as it is on the stack; 0: a frame that was
				 reported by name (tdt/integrate/leaf.h), which is not in the tree
				 */
	uint32_t parent; /* @8   the index of the caller's entry; or TDT_REGISTRY_TOP */
	uint32_t leaves; /* @12  how many leaves wait exactly here; plus TDT_REGISTRY_GUESSED */
};

/*
 * In `parent`: the entry has no parent, because libtdt called it.  If the stack was truncated
 * there, the enum tdt_cut is added.
 */
#define TDT_REGISTRY_TOP (UINT32_MAX - 15)

/* A bit in `leaves`: the step to the caller is a best guess (`guessed` in struct tdt_frame). */
#define TDT_REGISTRY_GUESSED (UINT32_C(1) << 31)

struct tdt_registry_tree {
	uint64_t polls;     /* @0   `polls` of the record, in the poll that the tree is of */
	uint64_t when;      /* @8   when that poll began */
	uint64_t gap;       /* @16  how long the task had waited or been runnable then: the time
				    from the beginning of the previous poll; 0: it was the first */
	uint64_t tick;      /* @24  how long each tree of the watch stayed current at that time: a
				    task whose polls are closer together than this has not a tree
				    of each poll */
	uint64_t unloads;   /* @32  at least so many modules had been unloaded before (dlpi_subs).
				    If more are unloaded now, `pc` and parents may be wrong in
				    modules that were not there when the process began */
	uint32_t n;         /* @40  the number of entries */
	uint32_t leaves;    /* @44  the number of stacks */
	uint32_t elsewhere; /* @48  wakers that other threads cloned: they are not in the tree */
	uint32_t lost;      /* @52  stacks for which there was no room */
	/* the entries follow */
};

/* What has happened since the library began its work: 64 bytes.  See "Counting" above. */
struct tdt_registry_counters {
	uint64_t spawned;     /* @0   tasks that were made */
	uint64_t panicked;    /* @8   tasks that panicked */
	uint64_t polls;       /* @16  polls of tasks whose records have been given back */
	uint64_t captures;    /* @24  polls that were captured */
	uint64_t dumps;       /* @32  snapshots of all tasks that were taken */
	uint64_t lost;        /* @40  lost wake-ups.  Subtract those structs tdt_registry_lost that
				      are not a second old, and may still be taken back */
	uint64_t reserved[2]; /* @48 */
};

/*
 * What a thread says about itself.  The thread with id t is found in slot t % n_threads of the
 * table, unless a later thread took the slot.  The struct lies in the thread's own memory, which is
 * unmapped when the thread has ended: if it cannot be read, if `id` is not t, or if there is no
 * thread t in the process, the slot is out of date.
 */
struct tdt_registry_thread {
	uint64_t own_poll;   /* @0   private to libtdt */
	uint32_t id;         /* @8   gettid(2) */
	uint8_t worker;      /* @12  1: between tdt_worker_thread_start(NULL) and ..._stop() */
	uint8_t own_flag;    /* @13  private to libtdt */
	uint16_t reserved0;  /* @14 */
	uint64_t parked;     /* @16  since when the worker idles, after tdt_worker_thread_park();
				     0: it does not */
	uint64_t now;        /* @24  the last time that tdt_worker_now() reported; 0: none */
	uint64_t entered;    /* @32  address of the innermost struct tdt_stack
				     (tdt/integrate/stack.h) that the thread has entered; 0: none */
	uint64_t ring;       /* @40  address of the struct tdt_recording_ring that the thread
				     writes to; 0: none */
	uint64_t reserved1;  /* @48 */
};

#define TDT_REGISTRY_PANIC_ENTRIES 48

/*
 * A task that panicked.  The n-th one since the start (n from 1) is in struct n % n_panics, until
 * it is overwritten.  Read `seq`, the struct, and `seq` again: the copy is whole if `seq` is even
 * and was the same three times.  A `number` of 0 means that the struct was never used.
 */
struct tdt_registry_panic {
	uint32_t seq;        /* @0   odd while the struct is written */
	uint32_t thread;     /* @4   the thread of the last poll */
	uint64_t number;     /* @8   n */
	uint64_t when;       /* @16  when the last poll ended */
	uint64_t id;         /* @24  this and what follows: as in the task's record */
	uint64_t parent;     /* @32 */
	uint64_t spawned;    /* @40 */
	uint64_t polls;      /* @48 */
	uint64_t poll;       /* @56 */
	uint64_t file;       /* @64  of a copy of the name, which stays when the task is gone */
	uint32_t line;       /* @72 */
	uint32_t column;     /* @76 */
	char name[TDT_TASK_RECORD_NAME_SIZE]; /* @80 */
	struct tdt_registry_tree tree; /* @144 the last tree of the task that was captured, perhaps
					  in its last poll: see tree.polls.  Without one, tree.n and
					  tree.leaves are 0 */
	struct tdt_registry_entry entry[TDT_REGISTRY_PANIC_ENTRIES]; /* @200 */
};

/*
 * A task that ended, and seems to have held a lock (tdt_lock_take()): 96 bytes.  Whether it did not
 * give the lock back is for the lock to say; the struct has the name that the record had.  It is
 * read as a panic is.
 */
struct tdt_registry_holder {
	uint32_t seq;     /* @0   odd while the struct is written */
	uint32_t outcome; /* @4   as in the task's record */
	uint64_t number;  /* @8   n */
	uint64_t when;    /* @16  when the task was over */
	uint64_t id;      /* @24 */
	char name[TDT_TASK_RECORD_NAME_SIZE]; /* @32 */
};

/*
 * A lost wake-up: a task went on in a poll that was made only for a request, although nobody had
 * woken it (docs/hang.md).  Within a second of `when` the library may find out that a wake-up was
 * on its way, and then sets `number` to 0; only later it counts.  It is read as a panic is, but
 * lies in any of the structs.
 */
struct tdt_registry_lost {
	uint32_t seq;         /* @0   odd while the struct is written */
	uint32_t wait_kind;   /* @4   this and the other `wait_` fields: what the task waited for */
	uint64_t number;      /* @8   the larger, the later; 0: none */
	uint64_t when;        /* @16  when the task had gone on */
	uint64_t waited;      /* @24  for how long it had waited until then, in nanoseconds */
	uint64_t id;          /* @32  this and what follows: as in the task's record */
	uint64_t parent;      /* @40 */
	uint64_t polls;       /* @48 */
	uint64_t poll;        /* @56 */
	uint64_t file;        /* @64  of a copy of the name, which stays when the task is gone */
	uint32_t line;        /* @72  in `file` */
	uint32_t column;      /* @76 */
	uint64_t wait_object; /* @80 */
	uint64_t wait_owner;  /* @88 */
	uint32_t own_era;     /* @96  private to libtdt */
	uint32_t reserved;    /* @100 */
	char name[TDT_TASK_RECORD_NAME_SIZE];      /* @104 */
	char wait_name[TDT_TASK_RECORD_NAME_SIZE]; /* @168 empty: none */
	struct tdt_registry_tree tree; /* @232 where it waited, if it was watched; otherwise tree.n
					  is 0 */
	struct tdt_registry_entry entry[TDT_REGISTRY_PANIC_ENTRIES]; /* @288 */
};

TDT_DECLS_END

#endif
