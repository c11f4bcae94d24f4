/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_REGISTRY_H
#define TDT_REGISTRY_H

/*
 * The layout of the task records in the memory of a process, for readers outside the process: a
 * debugger, a reader of core files, or a program that reads another process's memory
 * (process_vm_readv(2)) and contains no code of this library.  Inside the process use tdt/tasks.h.
 *
 *   tdt_registry ─▶ slab ─▶ slab ─▶ ... ─▶ 0
 *                    │
 *                    └▶ record, record, record...        `stride` bytes apart
 *                         │
 *                         └▶ watched: the last tree, and the one before
 *
 * The symbol `tdt_registry` is in the dynamic symbol table of libtdt.so.  A program that links
 * libtdt.a has the symbol in its own symbol table (.symtab, unless the program was stripped; in the
 * dynamic one if it was linked with -rdynamic).  A program that names the variable itself has the
 * symbol in its own dynamic symbol table.  Then the library uses the program's variable (a copy
 * relocation), and the variable in libtdt.so keeps its first contents.  Therefore look in the
 * program first, then in its libraries.
 *
 * All addresses are 64 bits wide, and are addresses in the process that is read.  Nothing that a
 * reader can reach is ever unmapped: slabs stay, and records and trees are used again for other
 * tasks.
 *
 * A core file contains all of this.  But `file` and `poll` mostly point into read-only parts of
 * modules, which a core file may leave out; read those parts from the files that were mapped there
 * (NT_FILE).  In a core file, or in a process that is stopped, read each record once; if its `seq`
 * is odd, its task was just being made.
 *
 * To read a record while the process runs:
 *
 *	1. Read all of it, and then all of it again.  (One process_vm_readv(2) can do both, with two
 *	   equal remote vectors.)
 *	2. If `seq` or `id` differ, the record was given to another task meanwhile: start again.
 *	3. If `seq` is odd, or `state` is TDT_RECORD_FREE, the record has no task, or not yet.
 *
 * If the two copies are the same to the last byte, all fields were so at one moment.  The copies of
 * a task that is polled all the time may never be the same.  In such a copy, the fields that the
 * task was made with are right (`id`, `parent`, `poll`, `file`, `line`, `column`, `name`).  Each
 * other field has a value that it had at some moment, but the fields may be of different polls, so
 * do not use the `wait_*` fields.
 *
 * It is known what a leaf waits for if `state` is TDT_RECORD_IDLE, `wait_count` is not 0, and
 * `wait_polls` is the lower half of `polls`.  If there is more than one leaf, this is only what the
 * first leaf waits for.  A mutex may have been handed on to another owner since.
 *
 * Read a slab anew for each look: `used` increases, and new slabs are inserted before the first
 * one.  A child of fork() has the records of its parent.  Among them are tasks that no thread of
 * the child will ever poll.  If such a task was being polled at the fork, its record says so for
 * ever.
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
 * The memory may be damaged, and a name may contain any bytes.  In sound memory the list of slabs
 * has an end, no slab is in it twice, `used` is at most `room`, and `stride` is at least
 * `record_size`.  A reader that checks these facts terminates on any memory.  It must not print
 * names unescaped (see tests/outside/registry_reader.c).
 *
 * The layout has a version.  Later layouts with the same version use only fields that are reserved
 * here.
 */

#include <stdint.h>

#pragma GCC visibility push(default)
#ifdef __cplusplus
extern "C" {
#endif

#define TDT_REGISTRY_MAGIC "tdt-reg" /* and a NUL: 8 bytes */
#define TDT_REGISTRY_VERSION 1

struct tdt_registry {
	char magic[8];        /* TDT_REGISTRY_MAGIC */
	uint32_t version;     /* TDT_REGISTRY_VERSION */
	uint32_t size;        /* sizeof(struct tdt_registry) */
	uint64_t slabs;       /* address of the first struct tdt_registry_slab; 0: no future was
				 ever traced */
	uint32_t record_size; /* sizeof(struct tdt_record) */
	uint32_t stride;      /* bytes from one record of a slab to the next */
	uint64_t watch_ns;    /* the interval of tdt_watch(); 0: off */
	uint64_t reserved[4];
};

/* Only libtdt writes this variable. */
extern struct tdt_registry tdt_registry;

struct tdt_registry_slab {
	uint64_t next;    /* address of the next slab; 0: this is the last one */
	uint64_t records; /* address of the first record */
	uint32_t used;    /* the number of records that have been in use; records behind these may
			     contain anything */
	uint32_t room;    /* the number of records for which the slab has room */
};

enum tdt_record_state {
	TDT_RECORD_FREE = 0,    /* no task */
	TDT_RECORD_IDLE = 1,    /* between two polls: the task waits, or is runnable */
	TDT_RECORD_POLLING = 2, /* in a poll, on `thread` */
	TDT_RECORD_ENDED = 3    /* ready, panicked or dropped; a handle of the task still exists */
};

#define TDT_RECORD_NAME_SIZE 64

/* The record of a task, 192 bytes.  Times are in nanoseconds of CLOCK_MONOTONIC. */
struct tdt_record {
	uint32_t seq;         /* odd while the record is passed from one task to another */
	uint32_t state;       /* enum tdt_record_state */
	uint64_t id;
	uint64_t parent;      /* the id of the task that spawned this one; 0: none */
	uint64_t since;       /* when the last poll began; before the first poll: when the task was
				 spawned */
	uint64_t polls;       /* the number of polls that began */
	uint64_t woken;       /* when the task was last woken, if its runtime reports that
				 (tdt_task_woken()); 0: never */
	uint64_t woken_by;    /* the id of the task that made that wake-up; 0: none */
	uint64_t poll;        /* address of the poll function of the future that was traced */

	uint64_t wait_object; /* what a leaf of the task waits for: see tdt_leaf_waits_on() */
	uint64_t wait_owner;  /* the id of a task */
	uint64_t file;        /* address of the name of the file where the task was spawned; 0:
				 unknown */
	uint32_t line;        /* in `file` */
	uint32_t column;
	uint64_t stack_top;   /* where the stack of the poll begins: the frames of the poll's
				 functions lie below this address */
	uint64_t tree;        /* address of a struct tdt_registry_watched; 0: not watched yet */
	uint32_t thread;      /* the id (gettid(2)) of the thread that polls the task, or polled it
				 last; 0: none */
	uint32_t wait_polls;  /* the low 32 bits of `polls` in the poll that reported what the task
				 waits for.  If `polls` differs now, `wait_*` is out of date */
	uint8_t wait_kind;    /* enum tdt_wait_kind, of the first leaf of that poll that reported */
	uint8_t wait_count;   /* the number of leaves of that poll that reported, at most 255 */
	uint8_t outcome;      /* with TDT_RECORD_ENDED, how the task ended: TDT_READY,
				 TDT_PANICKED, or TDT_PENDING if it was dropped */
	uint8_t own_bits;     /* this field and the next three are private to libtdt */
	uint8_t own_hint;
	uint8_t own_woken;
	uint16_t own_epoch;

	char name[TDT_RECORD_NAME_SIZE]; /* UTF-8, ends with NUL; empty: none */
};

/*
 * The trees of a task.  This struct is followed by tree 0, and then by tree 1.  Each tree occupies
 * sizeof(struct tdt_registry_tree) bytes and the bytes of `room` entries, whether or not all
 * entries are used.
 */
struct tdt_registry_watched {
	uint32_t own_next;  /* this field and the next are private to libtdt */
	uint32_t own_index;
	uint32_t published; /* the number of trees that were published.  The last one is the tree
			       with this number modulo 2 */
	uint32_t room;      /* the most entries of a tree.  Constant, whichever task uses it */
};

/*
 * A call tree: the stacks of the leaves of one poll.  Frames that several leaves share have one
 * entry.  Each entry with leaves is the innermost frame of a stack, which goes on from entry to
 * parent.
 */
struct tdt_registry_entry {
	uint64_t pc;     /* the return address, as it is on the stack */
	uint32_t parent; /* the index of the caller's entry; or TDT_REGISTRY_TOP */
	uint32_t leaves; /* how many leaves wait exactly here; plus TDT_REGISTRY_GUESSED */
};

/*
 * In `parent`: the entry has no parent, because libtdt called it.  If the stack was truncated
 * there, the enum tdt_cut is added.
 */
#define TDT_REGISTRY_TOP (UINT32_MAX - 15)

/* A bit in `leaves`: the step to the caller is a best guess (`guessed` in struct tdt_frame). */
#define TDT_REGISTRY_GUESSED (UINT32_C(1) << 31)

struct tdt_registry_tree {
	uint64_t polls;     /* `polls` of the record, in the poll that the tree is of */
	uint64_t when;      /* when that poll began */
	uint64_t unloads;   /* at least so many modules had been unloaded before (dlpi_subs).  If
			       more are unloaded now, `pc` and parents may be wrong in modules that
			       were not there when the process began */
	uint32_t n;         /* the number of entries */
	uint32_t leaves;    /* the number of stacks */
	uint32_t elsewhere; /* wakers that other threads cloned: they are not in the tree */
	uint32_t lost;      /* stacks for which there was no room */
	/* the entries follow */
};

#ifdef __cplusplus
}
#endif
#pragma GCC visibility pop

#endif
