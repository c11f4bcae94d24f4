/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_DIENAME_H
#define TDT_SRC_SYMBOLIZE_DIENAME_H

/* What a function is called, from its DIE. */

#include <stdbool.h>

#include <elfutils/libdw.h>

/*
 * The name of `function` (the DIE of one, or of an inlined copy), qualified in C++ and Rust (demangle.h) and as the
 * source has it in C.  NULL: unknown.  It lives as long as the process.  The namer only (namer.h), and within
 * tdt__debuginfo_try() (debuginfo.h).
 */
const char *tdt__diename(Dwarf_Die *function);

/*
 * Whether `function` is the body of a Rust async function, block or closure: {async_fn#0}, say.  Its
 * linkage name, which backtraces show, doesn't tell it from a closure; no source can have this name.
 */
bool tdt__diename_is_async(Dwarf_Die *function);

/* In a child of fork(): see tdt__symbols_abandon(). */
void tdt__diename_abandon(void);

#endif
