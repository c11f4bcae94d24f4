/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The name of a function, from its DIE. */

#include <stdbool.h>

#include <elfutils/libdw.h>

/*
 * Returns the name of `function` (the DIE of a function or of an inlined copy): qualified in C++
 * and Rust (demangle.h), and as in the source in C.  NULL: unknown.  The name lives as long as the
 * process.  For the namer only (namer.h), and within tdt__debuginfo_try() (debuginfo.h).
 */
const char *tdt__diename(Dwarf_Die *function);

/*
 * Whether `function` is the body of a Rust async function, block or closure: {async_fn#0}, for
 * example.  No function in a source can have this name.  The linkage name, which backtraces show,
 * does not tell such a body from a closure.
 */
bool tdt__diename_is_async(Dwarf_Die *function);

/*
 * Where the last part of a path of `n` bytes begins.  The arguments of a template may have paths,
 * too: poll<serve::{async_fn_env#0}>, poll::<serve::Nap>.
 */
size_t tdt__last_of_path(const char *path, size_t n);

/* Called in a child of fork(): see tdt__symbols_abandon(). */
void tdt__diename_abandon(void);
