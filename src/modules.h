/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_MODULES_H
#define TDT_SRC_MODULES_H

/*
 * Which executable and libraries are loaded where.  A snapshot is immutable and reference counted: a trace keeps the
 * one its PCs were captured under, and so names them rightly after a dlclose.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TDT__BUILD_ID_MAX 32 /* bytes; ld's default is 20 */

#define TDT__SEGMENTS_MAX 8 /* that are looked at; linkers make four or five */

struct tdt__module {
	uintptr_t start; /* its segments lie in [start, end) */
	uintptr_t end;
	struct {
		uintptr_t start;
		uintptr_t end;
	} readable[TDT__SEGMENTS_MAX]; /* those of them that can be read; the rest is empty */
	uintptr_t bias;  /* address in memory - address in the ELF file (dlpi_addr) */
	char *path;      /* of the file, absolute if that can be known; "[vdso]" for the kernel's */
	char build_id[2 * TDT__BUILD_ID_MAX + 1]; /* in hexadecimal, as found in memory; "": none */
};

struct tdt__modules {
	atomic_uint refs;
	uint64_t loads;   /* how many modules had been loaded and unloaded when it was taken (dlpi_adds, dlpi_subs): */
	uint64_t unloads; /* a PC means the same in two snapshots with the same `unloads` */
	size_t n;
	struct tdt__module module[]; /* sorted by start */
};

/* How many loads and unloads there have been.  Takes the loader's own lock: only under tdt__unwind_lock (fork.h). */
void tdt__modules_now(uint64_t *loads, uint64_t *unloads);

/* A snapshot with one reference; NULL: no memory.  Only under tdt__unwind_lock. */
struct tdt__modules *tdt__modules_take(void);

/* Whether more was loaded and unloaded before `a` was taken than before `b`. */
static inline bool tdt__modules_newer(const struct tdt__modules *a, const struct tdt__modules *b)
{
	return a->loads + a->unloads > b->loads + b->unloads;
}

struct tdt__modules *tdt__modules_ref(struct tdt__modules *modules);
void tdt__modules_unref(struct tdt__modules *modules);

/* The module whose segments `address` lies in; NULL: none.  Any thread, no lock. */
const struct tdt__module *tdt__modules_find(const struct tdt__modules *modules, uintptr_t address);

/* Whether a module has a word at `address`, as long as it is loaded.  Any thread, no lock. */
bool tdt__modules_readable(const struct tdt__modules *modules, uintptr_t address);

/* The whole path, to be freed, of the file that is mapped at `address`; NULL: none, or it can't be known. */
char *tdt__modules_path_at(uintptr_t address);

#endif
