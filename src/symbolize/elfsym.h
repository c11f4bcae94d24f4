/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The ELF symbol at an address, from .symtab of the file or of its debug file, or else from
 * .dynsym.  libdwfl's own dwfl_module_addrinfo() reads the whole table for every address (5 ms with
 * the 45,000 symbols of libLLVM, 0.15 ms with those of libc).  So the table is read once and sorted
 * here.  All of this is for the namer only (namer.h).
 */

#include <elfutils/libdwfl.h>

#include "symbolize/ranges.h"

/* Read the functions among the symbols of `elf`.  False: no memory. */
bool tdt__elfsym_read(struct tdt__ranges *symbols, Dwfl_Module *elf);

/*
 * Returns the name of the symbol that contains `address`, and sets `*start` to where the symbol
 * begins.  NULL: there is none.  The name lives as long as `elf`.
 */
const char *tdt__elfsym_find(const struct tdt__ranges *symbols, Dwfl_Module *elf, uint64_t address,
			     uint64_t *start);

/*
 * Returns the names of the functions that begin at `start`, one per call; NULL: there are no more.
 * `*at` must be 0 for the first call.  Names that are probably just further names of a function of
 * the source are left out: weak names, and names that C reserves for libraries.  Mangled names are
 * never left out.
 */
const char *tdt__elfsym_next(const struct tdt__ranges *symbols, Dwfl_Module *elf, uint64_t start,
			     size_t *at);
