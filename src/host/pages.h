/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * Memory of this process that may vanish while it is read: the loader's records, and the modules.
 * The kernel copies it (peek.h), a page at a time.  The pages that were read last are cached, since
 * a system call takes a microsecond.
 *
 * A cached page may be out of date.  The caller forgets all pages before it reads what may have
 * changed.  The caller of each function holds tdt__unwind_lock.
 */

#include <stddef.h>
#include <stdint.h>

/*
 * Copy `size` bytes from `address`, or fewer: up to the first byte that can't be read.  Returns how
 * many bytes were copied.
 */
size_t tdt__pages_copy(void *to, uintptr_t address, size_t size);

/* Empty the cache. */
void tdt__pages_forget(void);
