/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_MODULES_H
#define TDT_SRC_SYMBOLIZE_MODULES_H

/*
 * Which executables and libraries PCs lie in, in some process.
 *
 * A table is immutable and reference counted: a trace keeps the one that its PCs were captured under, and so names them
 * rightly after a dlclose().  Who fills it, and how (loaded.h for this process), is not known here.
 *
 * A table of this process holds the modules that were met since it had unloaded `unloads` modules.  Two things can be said
 * of a PC that was looked up in it:
 *
 *   lasting modules  were there when the process began, and are never unloaded: what was found is true for ever
 *   all others       what was found is true if, afterwards, no more than `unloads` modules were unloaded (unloads.h)
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TDT__BUILD_ID_MAX 32 /* bytes; ld's default is 20 */

struct tdt__module {
	uintptr_t start; /* its segments lie in [start, end) */
	uintptr_t end;
	uintptr_t bias;  /* address in memory - address in the ELF file */
	char *path;      /* of the file, as the loader has it: see tdt__module_path(); "[vdso]" for the kernel's */
	char *_Atomic whole; /* found out once, if `path` is relative; NULL: not yet */
	/* How to find that out: a whole path, to be freed; NULL: it can't be known, or there is no memory. */
	char *(*find_path)(const struct tdt__module *module);
	const char *mapped; /* opens the file that is mapped, if `path` does not any more; for ever; NULL: nothing does */
	char build_id[2 * TDT__BUILD_ID_MAX + 1]; /* in hexadecimal, as found in memory; "": none */
	uintptr_t link_map; /* the loader's own record of it, whose address is compared, and nothing else */
	bool lasting;
};

struct tdt__modules {
	atomic_uint refs;
	uint64_t unloads; /* how many modules the process had unloaded at some time before the first of these was met */
	bool lasting;     /* all of them are */
	size_t n;
	struct tdt__module module[]; /* sorted by start */
};

/* A table without modules, with one reference.  NULL: no memory. */
struct tdt__modules *tdt__modules_new(uint64_t unloads);

/*
 * Exchange `*table` for one that has the module, too, whose `path` and `whole` it takes over, and without the modules that
 * are not lasting, if `lasting_only`.  False: no memory, and nothing has changed.
 */
bool tdt__modules_add(struct tdt__modules **table, const struct tdt__module *module, bool lasting_only);

/*
 * Exchange `*table` for one with that number of unloads, which has its lasting modules only.  False: no memory, and
 * nothing has changed.
 */
bool tdt__modules_renew(struct tdt__modules **table, uint64_t unloads);

/* Whether `a` was made later than `b`: after more unloads, or when more modules had been met. */
static inline bool tdt__modules_newer(const struct tdt__modules *a, const struct tdt__modules *b)
{
	return a->unloads != b->unloads ? a->unloads > b->unloads : a->n > b->n;
}

/* Whether a module of `from` may be missing in `to`, which was made later: others may be where it was. */
static inline bool tdt__modules_lost(const struct tdt__modules *from, const struct tdt__modules *to)
{
	return to != from && (to->unloads != from->unloads || to->n <= from->n);
}

struct tdt__modules *tdt__modules_ref(struct tdt__modules *modules);
void tdt__modules_unref(struct tdt__modules *modules);

/* The module of the table whose segments `address` lies in; NULL: none.  Any thread, no lock. */
const struct tdt__module *tdt__modules_find(const struct tdt__modules *modules, uintptr_t address);

/*
 * The path of the module's file.  The loader has the path that it was given, which may be relative to a directory that
 * was left since; the first call for such a module finds out the whole path.  It lives as long as the module.  Any
 * thread that may wait.
 */
const char *tdt__module_path(const struct tdt__module *module);

#endif
