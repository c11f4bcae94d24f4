/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_ELFSYM_H
#define TDT_SRC_SYMBOLIZE_ELFSYM_H

/*
 * The ELF symbol at an address: from .symtab of the file or of its debug file, else .dynsym.  libdwfl's own
 * dwfl_module_addrinfo() reads the whole table for every address (5 ms with libLLVM's 45,000 symbols, 0.15 ms with
 * libc's), so it is read once and sorted here.  Everything is for the namer only (namer.h).
 */

#include <elfutils/libdwfl.h>

#include "symbolize/ranges.h"

/* Read the functions among the symbols of `elf`.  False: no memory. */
bool tdt__elfsym_read(struct tdt__ranges *symbols, Dwfl_Module *elf);

/* The name of the symbol `address` lies in, and where that begins; NULL: none.  The name lives as long as `elf`. */
const char *tdt__elfsym_find(const struct tdt__ranges *symbols, Dwfl_Module *elf, uint64_t address, uint64_t *start);

/*
 * The functions that begin at `start`, one a call; NULL: there are no more.  `*at` is 0 to begin with.
 * Names are left out that are likely to be further names of one function of the source: weak ones, and
 * those that C reserves for libraries; but for mangled ones.
 */
const char *tdt__elfsym_next(const struct tdt__ranges *symbols, Dwfl_Module *elf, uint64_t start, size_t *at);

#endif
