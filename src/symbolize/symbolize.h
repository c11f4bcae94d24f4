/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * From a PC to function, file, line and column, with libdw.  Looking up names may be slow, and may
 * wait for files.  So one thread at a time, the namer (namer.h), does it, with no lock held.  Its
 * results are cached for all threads.
 */

#include <pthread.h>

#include "symbolize/modules.h"

/*
 * Protects the cache of symbols, and the namer's queue (namer.h).  Polling threads never take it.
 */
extern pthread_mutex_t tdt__symbol_lock;

/* A function at a PC: one that was inlined there, or the one into which all others were inlined. */
struct tdt__place {
	/* C: as in the source; C++, Rust: qualified, without parameters; NULL: unknown. */
	const char *function;
	const char *file;      /* full path, unless `directory` is relative too; NULL: unknown */
	const char *directory; /* where its unit was compiled; NULL: unknown */
	uint32_t line;         /* 0: unknown */
	uint32_t column;
	/*
	 * Tells the function from all other functions and inlined instances of the file.  0: no
	 * debug information describes the function.
	 */
	uint64_t die;
	bool body; /* it is the body of a Rust async function or block */
};

#define TDT__ALSO_MAX 4

/* All that is known of a PC. */
struct tdt__symbol {
	const char *symbol;     /* the ELF symbol that the PC lies in, mangled; NULL: none */
	uint64_t symbol_offset; /* the offset of the PC itself (not PC - 1) in `symbol` */
	const char *missing;    /* the .dwo file that has the lines and was not found, or is
				   not the right one; NULL: none */
	/*
	 * Other functions that were folded with the outermost one: TDT__ALSO_MAX at most, and then
	 * NULL.  NULL: there are none.
	 */
	const char *const *also;
	size_t n;                  /* 0: not even a name */
	struct tdt__place place[]; /* innermost first; each but the last is inlined into the next */
};

/*
 * Returns what `pc` (an address in memory, in `module`) means.  A return address is looked up one
 * byte before it, which belongs to the call and not to what comes after it.  The result and its
 * strings are cached, and live as long as the process.
 *
 * If a module has no debug information, the function is the ELF symbol.  So it is if the module was
 * made with -gsplit-dwarf and the .dwo file was not found, is not the right one, or could not be
 * read now (then it is read later).  If the module's file is gone, or is not
 * the one that was loaded (it has another build-id), the result is what the module's separate debug
 * file says, if there is one.  A module without a build-id is known by its path alone.
 *
 * NULL: there is no memory (errno is ENOMEM), and no other reason; a later call may succeed.  If
 * libdw itself runs out of memory half way, the module's debug information is lost for the process,
 * but its ELF symbols are not.  Debug files stay mapped, but not open.  For the namer only.  Takes
 * tdt__symbol_lock for some instructions.
 */
const struct tdt__symbol *tdt__symbolize(const struct tdt__module *module, uintptr_t pc,
					 bool return_address);

/* Returns the cached result; NULL: there is none.  Any thread, under tdt__symbol_lock. */
const struct tdt__symbol *tdt__symbol_known(const struct tdt__module *module, uintptr_t pc,
					    bool return_address);

/*
 * Called in a child of fork(), if the namer was in the middle of something: forget the namer's
 * data, without freeing any of it.  The cache stays.
 */
void tdt__symbols_abandon(void);
