/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_LASTING_H
#define TDT_SRC_HOST_LASTING_H

/*
 * Which modules the process began with: the executable, what it needs, and the loader.  The loader never unloads these
 * (dlclose(3) gives back only what dlopen(3) has loaded).
 */

#include <link.h>
#include <stdbool.h>

/*
 * Whether the loader's record `map` is that of such a module.  The answer may be false for one that lasts (as some of
 * those are that only other libraries need), never true for one that may go.  Only under tdt__unwind_lock: the first call finds out, with
 * some system calls.  NULL: only find out.
 */
bool tdt__is_lasting(const struct link_map *map);

#endif
