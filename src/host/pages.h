/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_PAGES_H
#define TDT_SRC_HOST_PAGES_H

/*
 * Memory of this process that may vanish while it is read: what the loader and the modules have.  The kernel copies it
 * (peek.h), a page at a time, and the pages that were read last are kept, since a system call takes a microsecond.
 *
 * A kept page may be out of date.  The caller forgets all pages before it reads what may have changed.  Everything here is
 * under tdt__unwind_lock.
 */

#include <stddef.h>
#include <stdint.h>

/* Copy up to `size` bytes from `address`: up to the first that can't be read.  Returns how many. */
size_t tdt__pages_copy(void *to, uintptr_t address, size_t size);

void tdt__pages_forget(void);

#endif
