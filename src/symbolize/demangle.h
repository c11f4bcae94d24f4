/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_SYMBOLIZE_DEMANGLE_H
#define TDT_SRC_SYMBOLIZE_DEMANGLE_H

/* From a linker's name to the one in the source. */

/*
 * What `name` is called in C++ or Rust: qualified by namespaces, types and template arguments, with neither parameters
 * nor return type, and without Rust's hash.  NULL: it is no mangled name, too long a one (some 1,000 characters: the
 * demangler's bound on the stack it takes), or there is no memory.  `name` must live as long as the process, as the
 * answer does, of which there is one a name.  The namer only (namer.h).
 */
const char *tdt__demangle(const char *name);

/* In a child of fork(): see tdt__symbols_abandon(). */
void tdt__demangle_abandon(void);

#endif
