/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_H
#define TDT_SRC_SYMBOLIZE_H

/* From a PC to function, file, line and column, through libdw.  Asker's thread only: it takes a lock and may be slow. */

#include "modules.h"

/* A function at a PC: one that was inlined there, or the one it all was inlined into. */
struct tdt__place {
	const char *function;  /* demangled; NULL: unknown */
	const char *file;      /* full path; NULL: unknown */
	const char *directory; /* where its unit was compiled; NULL: unknown */
	uint32_t line;         /* 0: unknown */
	uint32_t column;
};

/* All that is known of a PC. */
struct tdt__symbol {
	const char *symbol;     /* the ELF symbol it lies in, mangled; NULL: none */
	uint64_t symbol_offset; /* of the PC itself (not PC - 1) in it */
	size_t n;               /* 0: not even a name */
	struct tdt__place place[]; /* innermost first; all but the last are inlined into the next */
};

/*
 * What `pc` (an address in memory, in `module`) means.  A return address is looked up at PC - 1: the call, not what
 * comes after it.  The answer and its strings are cached, and live as long as the process.  NULL: no memory (errno
 * ENOMEM) and nothing else; a module that has no debug information, or whose file is gone or is not
 * the one that was loaded (another build-id), gives what there is.  Any thread; takes tdt__symbol_lock (fork.h).
 */
const struct tdt__symbol *tdt__symbolize(const struct tdt__module *module, uintptr_t pc, bool return_address);

#endif
