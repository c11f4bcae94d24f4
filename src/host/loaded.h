/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Filling a table of modules (modules.h) with modules that this process has loaded.
 *
 * This code never goes through the loader's list of modules, because a callback of the host's may
 * hold the lock of that list for ever.  A module is looked up by a PC that lies in it, with
 * _dl_find_object(), which takes no lock.  The kernel copies what is read of the module (pages.h),
 * since the module may be unloaded meanwhile.
 */

#include <stdbool.h>
#include <stdint.h>

struct tdt__modules;

/*
 * Whether `address` lies in a module that is loaded now.  Any thread; takes no lock;
 * async-signal-safe.
 */
bool tdt__is_loaded(uintptr_t address);

/*
 * Make sure that `*table` holds the module that `pc` lies in now.  If necessary, exchange `*table`
 * for another table: the caller's reference moves to the new one.  If the table has a module at the
 * same addresses that was unloaded since, the new table has none of the modules that are not
 * lasting, except the module of `pc`.  Returns 0, -ENOENT (`pc` lies in no module) or -ENOMEM.  The
 * caller holds tdt__unwind_lock.
 */
int tdt__loaded_meet(struct tdt__modules **table, uintptr_t pc);
