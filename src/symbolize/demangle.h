/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* From a linker's name to the name in the source. */

/*
 * Returns the C++ or Rust name of `name`: qualified by namespaces, types and template arguments,
 * with neither parameters nor return type, and without Rust's hash; or the name of a leaf of this
 * library, without the `.poll` of its poll, or of its functions in trees (base/leaf_poll.h).  NULL:
 * `name` is not mangled, or is too long (some 1,000 characters: the demangler limits the stack that
 * it takes), or there is no memory.  `name` must live as long as the process.  So does the result;
 * there is one per name.  For the namer only (namer.h).
 */
const char *tdt__demangle(const char *name);

/* Called in a child of fork(): see tdt__symbols_abandon(). */
void tdt__demangle_abandon(void);
