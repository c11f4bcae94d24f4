/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Which modules the process began with: the executable, the libraries that it needs, and the loader
 * itself.  The loader never unloads these: dlclose(3) unloads only what dlopen(3) has loaded.
 */

#include <link.h>
#include <stdbool.h>

/*
 * Whether the loader's record `map` is that of a lasting module.  The answer is never true for a
 * module that may be unloaded, but it may be false for a lasting one (for some libraries that only
 * other libraries need).  The first call reads the loader's list, with some system calls; a call
 * with NULL does only that.  The caller holds tdt__unwind_lock.
 */
bool tdt__is_lasting(const struct link_map *map);
