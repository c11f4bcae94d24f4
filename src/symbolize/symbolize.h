/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_SYMBOLIZE_H
#define TDT_SRC_SYMBOLIZE_SYMBOLIZE_H

/*
 * From a PC to function, file, line and column, by libdw.  It may be slow, and wait for files: so one thread at a time,
 * the namer (namer.h), looks names up, with no lock held.  What it has found is cached, for all.
 */

#include <pthread.h>

#include "symbolize/modules.h"

/*
 * Protects the cache of symbols, and the namer's queue (namer.h).  Polling threads never take it.
 */
extern pthread_mutex_t tdt__symbol_lock;

/* A function at a PC: one that was inlined there, or the one it all was inlined into. */
struct tdt__place {
	const char *function;  /* C: as in the source; C++, Rust: qualified, without parameters; NULL: unknown */
	const char *file;      /* full path, unless `directory` is relative too; NULL: unknown */
	const char *directory; /* where its unit was compiled; NULL: unknown */
	uint32_t line;         /* 0: unknown */
	uint32_t column;
	uint64_t die;          /* tells it from all other functions and inlined instances of the file; 0: no debug
				  information describes it */
	bool body;             /* of a Rust async function or block */
};

#define TDT__ALSO_MAX 4

/* All that is known of a PC. */
struct tdt__symbol {
	const char *symbol;        /* the ELF symbol it lies in, mangled; NULL: none */
	uint64_t symbol_offset;    /* of the PC itself (not PC - 1) in it */
	const char *const *also;   /* other functions that were folded with the outermost, TDT__ALSO_MAX at most, then
				      NULL; NULL: none */
	size_t n;                  /* 0: not even a name */
	struct tdt__place place[]; /* innermost first; all but the last are inlined into the next */
};

/*
 * What `pc` (an address in memory, in `module`) means.  A return address is looked up at PC - 1: the call, not what
 * comes after it.  The answer and its strings are cached, and live as long as the process.
 *
 * A module that has no debug information gives the ELF symbol as function, one made with -gsplit-dwarf that and the
 * line, but nothing that was inlined.  One whose file is gone or is not the one that was loaded (another build-id)
 * gives what its separate debug file says, if there is one.  A module without a build-id is known by its path alone.
 *
 * NULL: no memory (errno ENOMEM) and nothing else; later there may be an answer.  If libdw itself runs out of memory
 * half way, that module's debug information is lost to the process, its ELF symbols are not.  Debug files stay mapped,
 * but not open.  The namer only; takes tdt__symbol_lock for some instructions.
 */
const struct tdt__symbol *tdt__symbolize(const struct tdt__module *module, uintptr_t pc, bool return_address);

/* The cached answer; NULL: there is none.  Any thread, under tdt__symbol_lock. */
const struct tdt__symbol *tdt__symbol_known(const struct tdt__module *module, uintptr_t pc, bool return_address);

/*
 * In a child of fork(), where the namer was in the middle of something: forget what it works with, as it is, without
 * freeing any of it.  The cache stays.
 */
void tdt__symbols_abandon(void);

#endif
