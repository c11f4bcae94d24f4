/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The modules (executables and libraries) of some process, in which PCs lie.
 *
 * A table is immutable and reference counted.  A trace holds the table under which its PCs were
 * captured, so it names them correctly after a dlclose().  The code that fills a table (loaded.h
 * for this process) is not known here.
 *
 * A table of this process holds the modules that were met since the process had unloaded `unloads`
 * modules.  How long a result stays true depends on the module in which the PC was found:
 *
 *   lasting modules  were there when the process began, and are never unloaded.  The result is true
 *                    for ever.
 *   other modules    The result is true if no more than `unloads` modules had been unloaded after
 *                    the PC was looked up (unloads.h).
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TDT__BUILD_ID_MAX 32 /* bytes; ld's default is 20 */

/*
 * Find the build-id among the notes of a segment, which is aligned to 4 bytes, or to 8 if `align`
 * is, and write it in hexadecimal, at most 2 * TDT__BUILD_ID_MAX digits.  Without one, nothing is
 * written.
 */
void tdt__build_id_find(char *build_id, const unsigned char *notes, size_t size, uint64_t align);

struct tdt__module {
	uintptr_t start; /* its segments lie in [start, end) */
	uintptr_t end;
	uintptr_t bias; /* address in memory - address in the ELF file */
	/*
	 * The file's path, as the loader has it: see tdt__module_path(); "[vdso]": the kernel's
	 * module.
	 */
	char *path;
	/* The whole path, found out once if `path` is relative; NULL: not yet. */
	char *_Atomic whole;
	/*
	 * Finds out the whole path, which the caller frees.  Returns NULL if the path cannot be
	 * known, or if there is no memory.  The field is NULL if there is no such function.
	 */
	char *(*find_path)(const struct tdt__module *module);
	/*
	 * A path that opens the mapped file, even if `path` does not any more.  It lives as long as
	 * the process.  NULL: there is no such path.
	 */
	const char *mapped;
	char build_id[2 * TDT__BUILD_ID_MAX + 1]; /* in hexadecimal, as found in memory; "": none */
	/* The address of the loader's own record of the module.  It is only compared. */
	uintptr_t link_map;
	bool lasting;
	/*
	 * The module is one of another process or of a core file.  `path` is only a name then: the
	 * file system of this process may have another file there.  Without `mapped`, no file is
	 * opened for it; if `mapped` is empty, the debug file is.
	 */
	bool foreign;
};

struct tdt__modules {
	atomic_uint refs;
	/*
	 * The number of modules that the process had unloaded at some time before the first module
	 * of this table was met.
	 */
	uint64_t unloads;
	bool lasting; /* all modules of the table are lasting */
	size_t n;
	struct tdt__module module[]; /* sorted by start */
};

/* Whether a module of the table lies in [start, end), at least partly. */
static inline bool tdt__modules_overlap(const struct tdt__modules *table, uint64_t start,
					uint64_t end)
{
	for (size_t i = 0; i < table->n; i++)
		if (table->module[i].start < end && start < table->module[i].end)
			return true;
	return false;
}

/* A table without modules, with one reference.  NULL: no memory. */
struct tdt__modules *tdt__modules_new(uint64_t unloads);

/*
 * Make a table of `n` modules, sorted by start, with one reference.  The paths are copied.  NULL:
 * no memory.
 */
struct tdt__modules *tdt__modules_of(const struct tdt__module *module, size_t n);

/*
 * Exchange `*table` for a table that has `module`, too.  The new table takes over the `path` and
 * `whole` of `module`.  If `lasting_only`, it has no other modules but the lasting ones.  False: no
 * memory, and nothing has changed.
 */
bool tdt__modules_add(struct tdt__modules **table, const struct tdt__module *module,
		      bool lasting_only);

/*
 * Exchange `*table` for a table with that number of unloads, which has only the lasting modules.
 * False: no memory, and nothing has changed.
 */
bool tdt__modules_renew(struct tdt__modules **table, uint64_t unloads);

/* Whether `a` was made later than `b`: after more unloads, or when more modules had been met. */
static inline bool tdt__modules_newer(const struct tdt__modules *a, const struct tdt__modules *b)
{
	return a->unloads != b->unloads ? a->unloads > b->unloads : a->n > b->n;
}

/*
 * Whether a module of `from` may be missing in `to`, which was made later: another module may be in
 * its place.
 */
static inline bool tdt__modules_lost(const struct tdt__modules *from, const struct tdt__modules *to)
{
	return to != from && (to->unloads != from->unloads || to->n <= from->n);
}

/* From now on the symbolizer opens no file of these modules.  Nobody else may use the table. */
void tdt__modules_withhold(struct tdt__modules *modules);

struct tdt__modules *tdt__modules_ref(struct tdt__modules *modules);
void tdt__modules_unref(struct tdt__modules *modules);

/*
 * Returns the module of the table whose segments contain `address`; NULL: none.  Any thread, no
 * lock.
 */
const struct tdt__module *tdt__modules_find(const struct tdt__modules *modules, uintptr_t address);

/*
 * Returns the path of the module's file.  The loader has the path that it was given, which may be
 * relative to a directory that the process has left since.  The first call for such a module finds
 * out the whole path.  The path lives as long as the module.  Any thread that may wait.
 */
const char *tdt__module_path(const struct tdt__module *module);
