/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_DIENAME_H
#define TDT_SRC_DIENAME_H

/* What a function is called, from its DIE. */

#include <elfutils/libdw.h>

/*
 * The name of `function` (the DIE of one, or of an inlined copy), qualified in C++ and Rust (demangle.h) and as the
 * source has it in C.  NULL: unknown.  It lives as long as the process.  Under tdt__symbol_lock (fork.h), and within
 * tdt__debuginfo_try() (debuginfo.h).
 */
const char *tdt__diename(Dwarf_Die *function);

#endif
