/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_UNWIND_UNWINDER_H
#define TDT_SRC_UNWIND_UNWINDER_H

/*
 * libunwind, asked about this process as if it were another: registers and memory are what we say they are.
 *
 * In its local address space libunwind reads memory itself, and validates what it is not sure of by a pipe of its own:
 * it reads a byte from it and writes one.  The host may have closed the pipe's descriptors, as daemons do, and got them
 * again for a file or a socket.  It also goes through the loader's list of modules, which may be locked for ever.
 *
 * So unwind information is found here: by _dl_find_object() and the module's .eh_frame_hdr.  It is read by pages.h: if
 * the module is unloaded meanwhile, what was read is nonsense, but nothing faults.  What was learned from it counts only if no module was unloaded (modules.h).
 */

#include <libunwind.h>
#include <pthread.h>
#include <stdint.h>

/*
 * Protects libunwind, and the modules and rules that are known.  Polling threads take it, too, for what is new: some
 * 7 us for a PC, and some more for the first PC in its module.
 */
extern pthread_mutex_t tdt__unwind_lock;

typedef int tdt__unwinder_memory_fn(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
				    void *data);
typedef int tdt__unwinder_register_fn(unw_addr_space_t space, unw_regnum_t number, unw_word_t *value, int write,
				      void *data);

/*
 * An address space: cursors on it, made by unw_init_remote() with some `data`, read memory (unwind information, too) by
 * `memory` and registers by `registers`.  It is never freed.  NULL: no memory.  Only under tdt__unwind_lock.
 */
unw_addr_space_t tdt__unwinder_new(tdt__unwinder_memory_fn *memory, tdt__unwinder_register_fn *registers,
				   unw_caching_policy_t caching);

/* Read a word of unwind information (pages.h), for a `memory`.  Returns 0 or an error of libunwind's. */
int tdt__unwinder_word(uintptr_t address, unw_word_t *value);

/* Whether there is unwind information for the PC the cursor is at: without, a step would be a guess of libunwind's. */
int tdt__unwinder_knows(unw_cursor_t *cursor);

/*
 * As tdt__cfi_function(), of code that may be of a module which no table has.  Takes tdt__unwind_lock.
 */
uintptr_t tdt__unwinder_function(uintptr_t pc, uintptr_t *end);

#endif
