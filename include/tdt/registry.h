/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_REGISTRY_H
#define TDT_REGISTRY_H

/*
 * Where the tasks of a process lie in its memory, for readers outside it: a debugger, a core file, a program that reads
 * another's memory (process_vm_readv(2)) and has no code in it.  Inside the process use tdt/tasks.h.
 *
 *   tdt_registry ─▶ slab ─▶ slab ─▶ ... ─▶ 0
 *                    │
 *                    └▶ record, record, record...        `stride` bytes apart
 *                         │
 *                         └▶ watched: the last tree, and the one before
 *
 * The symbol `tdt_registry` stands in the dynamic symbol table of libtdt.so.  A program that links libtdt.a has it in its
 * own symbol table (.symtab, unless it was stripped or linked with -rdynamic).  So does a program that names the
 * variable itself, in its dynamic one, and then the library uses that (a copy relocation), and its own stays as it was:
 * look in the program first, then in its libraries.  All addresses are those of the process that is read, and 64 bits
 * wide.  Nothing that a reader can come to is ever unmapped: slabs stay, records are used again, and so are the trees.
 *
 * A core file has all this; but `file` and `poll` mostly point into read-only parts of modules, which it may leave out:
 * those are in the files that were mapped there (NT_FILE).  In one, or in a process that is stopped, a record is read
 * once; a task whose `seq` is odd was just being made.
 *
 * Reading a record while the process runs:
 *
 *	1. read all of it, and then all of it again (one process_vm_readv(2) can do both: two equal remote vectors)
 *	2. `seq` or `id` differ?  The record was given to another task meanwhile: begin anew
 *	3. `seq` is odd, or `state` is TDT_RECORD_FREE: there is no task here, or not yet
 *
 * Once both are the same to the last byte, all of it was so at one moment.  Of a task that is polled all the time they
 * may never be.  Then what it was made with (`id`, `parent`, `poll`, `file`, `line`, `column`, `name`) is right, and
 * each other field is one that it had; but they may be of different polls, and a `wait_*` is not to be believed.
 *
 * What a leaf waits for is known while `state` is TDT_RECORD_IDLE, `wait_count` is not 0, and `wait_polls` is the lower
 * half of `polls`.  With more than one leaf it is only what the first waits for.  A mutex may have been handed on since
 * to another owner.
 *
 * A slab is read anew for each look: `used` rises, and new slabs come before the first.  A child of fork() has the
 * records of its parent, with tasks that no thread of it will ever poll: if one was polled then, it is for ever.
 *
 * The last tree of a task that is or was watched (tdt/watch.h) lies at its `tree`.  While one is written the one before
 * stays, so that there always is a whole one, in a core file too.  Reading it while the process runs:
 *
 *	4. read `published` of the struct tdt_registry_watched at `tree`: p
 *	5. read tree p % 2
 *	6. read `published` again: it is not p?  The tree may be torn: go back to 4
 *	7. read the record's `tree` and `seq` again: they changed?  It may be another task's: go back to 1
 *
 * (A tree is written at most once an interval, so that rarely has to be done twice.)
 *
 * The memory may be damaged, and a name may hold any bytes.  In sound memory the list of slabs has an end
 * and no slab is in it twice, `used` is at most `room`, and `stride` is at least `record_size`.  A reader
 * that looks at these comes to an end in any memory.  It does not print names as they are
 * (tests/registry_reader.c).
 *
 * The layout has a version.  Later versions with the same number only use what is reserved here.
 */

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define TDT_REGISTRY_MAGIC "tdt-reg" /* and a NUL: 8 bytes */
#define TDT_REGISTRY_VERSION 1

struct tdt_registry {
	char magic[8];
	uint32_t version;
	uint32_t size;        /* sizeof(struct tdt_registry) */
	uint64_t slabs;       /* address of the first struct tdt_registry_slab; 0: no task was ever traced */
	uint32_t record_size; /* sizeof(struct tdt_record) */
	uint32_t stride;      /* from one record to the next of a slab */
	uint64_t watch_ns;    /* the interval of tdt_watch(); 0: off */
	uint64_t reserved[4];
};

/* Only ever read by others; written by libtdt. */
extern struct tdt_registry tdt_registry;

struct tdt_registry_slab {
	uint64_t next;    /* address of another slab; 0: this was the last */
	uint64_t records; /* address of the first record */
	uint32_t used;    /* so many records have been in use: those behind may hold anything */
	uint32_t room;    /* so many there can be */
};

enum tdt_record_state {
	TDT_RECORD_FREE = 0,    /* no task */
	TDT_RECORD_IDLE = 1,    /* between two polls: it waits */
	TDT_RECORD_POLLING = 2, /* in one, on `thread` */
	TDT_RECORD_ENDED = 3    /* ready, panicked or dropped; somebody has a handle of it still */
};

#define TDT_RECORD_NAME_SIZE 64

/* A task.  Times are of CLOCK_MONOTONIC, in nanoseconds.  192 bytes. */
struct tdt_record {
	uint32_t seq;         /* odd while the record passes from one task to another */
	uint32_t state;       /* enum tdt_record_state */
	uint64_t id;
	uint64_t parent;      /* the id of the task that spawned it; 0: none did */
	uint64_t since;       /* when its last poll began; before the first, when it was spawned */
	uint64_t polls;       /* that began */
	uint64_t woken;       /* when it was last woken, if its runtime tells (tdt_task_woken()); 0: never */
	uint64_t woken_by;    /* the id of the task that did; 0: none */
	uint64_t poll;        /* address of the poll function of the future that was traced */

	uint64_t wait_object; /* what a leaf of it waits for: see tdt_leaf_waits_on() */
	uint64_t wait_owner;  /* the id of a task */
	uint64_t file;        /* address of the name of the file where it was spawned; 0: unknown */
	uint32_t line;        /* in `file` */
	uint32_t column;
	uint64_t stack_top;   /* where the stack of its poll begins: what the poll's functions have on it lies below */
	uint64_t tree;        /* address of a struct tdt_registry_watched; 0: it was not watched yet */
	uint32_t thread;      /* the id of the thread that polls it, or last did (gettid(2)); 0: none has */
	uint32_t wait_polls;  /* the low 32 bits of `polls` in the poll that said what it waits for: else out of date */
	uint8_t wait_kind;    /* enum tdt_wait_kind: of the first leaf of that poll that said so */
	uint8_t wait_count;   /* leaves of that poll that said so, at most 255 */
	uint8_t outcome;      /* how it ended: TDT_READY, TDT_PANICKED, or TDT_PENDING if it was dropped.  With ENDED */
	uint8_t own_bits;     /* this and the next three are libtdt's own */
	uint8_t own_hint;
	uint8_t own_woken;
	uint16_t own_epoch;

	char name[TDT_RECORD_NAME_SIZE]; /* UTF-8, ends with NUL; empty: none */
};

/*
 * The trees of a task: this, then tree 0, then tree 1.  Each has sizeof(struct tdt_registry_tree) bytes and those of
 * `room` entries, whether used or not.
 */
struct tdt_registry_watched {
	uint32_t own_next; /* this and the next are libtdt's own */
	uint32_t own_index;
	uint32_t published; /* counts the trees that were: the last is the one with this number, modulo 2 */
	uint32_t room;      /* the entries that a tree can have.  Constant, whosever it is */
};

/*
 * A call tree, as the stacks of a poll's leaves.  Of frames that several leaves share there is one entry; a stack begins
 * at each entry with leaves, and goes from parent to parent.
 */
struct tdt_registry_entry {
	uint64_t pc;     /* as the stack has it: the return address */
	uint32_t parent; /* the index of the caller's entry; or TDT_REGISTRY_TOP */
	uint32_t leaves; /* how many wait just here; and TDT_REGISTRY_GUESSED */
};

#define TDT_REGISTRY_TOP (UINT32_MAX - 15) /* as `parent`: none, it was called by libtdt; plus an enum tdt_cut: cut */
#define TDT_REGISTRY_GUESSED (UINT32_C(1) << 31) /* in `leaves`: as in struct tdt_frame */

struct tdt_registry_tree {
	uint64_t polls;     /* the record's, in the poll it is of */
	uint64_t when;      /* that poll began */
	uint64_t unloads;   /* so many modules at least had been unloaded before (dlpi_subs): if more are now, `pc` and parents
			       in modules that were not there when the process began may be wrong */
	uint32_t n;         /* entries */
	uint32_t leaves;    /* stacks */
	uint32_t elsewhere; /* wakers cloned on other threads: not in the tree */
	uint32_t lost;      /* stacks there was no room for */
	/* then the entries */
};

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
