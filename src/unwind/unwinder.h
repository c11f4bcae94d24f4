/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Using libunwind on this process as if it were another process: we supply the values of registers
 * and memory.
 *
 * In its local address space libunwind reads memory itself.  It validates uncertain addresses by a
 * pipe of its own: it reads a byte from the pipe and writes one.  The host may have closed the
 * pipe's descriptors, as daemons do, and may use the same numbers for a file or a socket.
 * libunwind also goes through the loader's list of modules, which may be locked for ever.
 *
 * So unwind information is found here, by _dl_find_object() and the module's .eh_frame_hdr, and is
 * read by pages.h.  If the module is unloaded meanwhile, the bytes that were read make no sense,
 * but nothing faults.  What was learned from them counts only if no module was unloaded
 * (modules.h).
 */

#include <libunwind.h>
#include <pthread.h>
#include <stdint.h>

/*
 * Protects our use of libunwind, the newest tables of modules and rules, and the cache of pages.h.
 * Polling threads take this lock too, to learn a new PC: that takes some 7 us, and more for the
 * first PC in a module.
 */
extern pthread_mutex_t tdt__unwind_lock;

typedef int tdt__unwinder_memory_fn(unw_addr_space_t space, unw_word_t address, unw_word_t *value,
				    int write, void *data);
typedef int tdt__unwinder_register_fn(unw_addr_space_t space, unw_regnum_t number,
				      unw_word_t *value, int write, void *data);

/*
 * Make an address space.  A cursor on it is made by unw_init_remote() with some `data`; it reads
 * memory (unwind information, too) by `memory`, and registers by `registers`.  The address space is
 * never freed.  NULL: no memory.  The caller holds tdt__unwind_lock.
 */
unw_addr_space_t tdt__unwinder_new(tdt__unwinder_memory_fn *memory,
				   tdt__unwinder_register_fn *registers,
				   unw_caching_policy_t caching);

/*
 * Read a word of unwind information (pages.h).  A function that is passed for `memory` calls this.
 * Returns 0 or an error of libunwind's.  The caller holds tdt__unwind_lock.
 */
int tdt__unwinder_word(uintptr_t address, unw_word_t *value);

/*
 * Whether there is unwind information for the PC that the cursor is at.  Without information
 * libunwind would guess the next step.  The caller holds tdt__unwind_lock.
 */
int tdt__unwinder_knows(unw_cursor_t *cursor);

/*
 * As tdt__cfi_function(), but the code may lie in a module that no table has.  Takes
 * tdt__unwind_lock.
 */
uintptr_t tdt__unwinder_function(uintptr_t pc, uintptr_t *end);
