/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_INTERN_H
#define TDT_SRC_INTERN_H

/*
 * The copy of `text` that lives as long as the process: one a text, however often it is asked for.  NULL: no memory.
 * Under tdt__symbol_lock (fork.h).
 */
const char *tdt__intern(const char *text);

#endif
