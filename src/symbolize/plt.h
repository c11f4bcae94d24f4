/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The stubs through which a module calls functions of other modules.  No symbol names a stub.  All
 * of this is for the namer only (namer.h).
 */

#include <stdint.h>

#include <elfutils/libdwfl.h>

/*
 * Returns the name of the stub that `address` lies in (`send@plt`, as gdb writes it), and sets
 * `*start` to where the stub begins.  NULL: the address lies in no known stub, or there is no
 * memory.  The name lives as long as the process.
 */
const char *tdt__plt_find(Dwfl_Module *elf, uint64_t address, uint64_t *start);
