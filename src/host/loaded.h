/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_LOADED_H
#define TDT_SRC_HOST_LOADED_H

/*
 * The modules that this process has loaded, as tables of them (modules.h) are filled.
 *
 * The loader's list of modules is never gone through: its lock may be held for ever by a callback of the host's.  A
 * module is looked up by a PC that was met in it, with _dl_find_object(), which takes no lock, and what is read of it is
 * copied by the kernel (pages.h), since it may be unloaded meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt__modules;

/* Whether `address` lies in a module that is loaded now.  Any thread, no lock; async-signal-safe. */
bool tdt__is_loaded(uintptr_t address);

/*
 * Have `*table` hold the module that `pc` lies in now: it is exchanged for another table if that is necessary (the
 * reference goes with it).  If a module of the table has gone that lay there, all that are not lasting are left out of
 * the new one.  Returns 0, -ENOENT (`pc` lies in no module) or -ENOMEM.  Only under tdt__unwind_lock.
 */
int tdt__loaded_meet(struct tdt__modules **table, uintptr_t pc);

#endif
