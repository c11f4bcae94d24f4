/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_PLT_H
#define TDT_SRC_SYMBOLIZE_PLT_H

/*
 * The stubs through which a module calls functions of others.  No symbol names them.  Everything is
 * for the namer only (namer.h).
 */

#include <stdint.h>

#include <elfutils/libdwfl.h>

/*
 * The name of the stub that `address` lies in, `send@plt` as gdb has it, and where the stub begins;
 * NULL: it lies in none that is known, or there is no memory.  x86-64 only.  The name lives as long
 * as the process.
 */
const char *tdt__plt_find(Dwfl_Module *elf, uint64_t address, uint64_t *start);

#endif
