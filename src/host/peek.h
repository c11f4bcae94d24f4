/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_HOST_PEEK_H
#define TDT_SRC_HOST_PEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Copy up to `size` bytes from `address` of this process, whatever lies there: up to the first that can't be read.
 * Returns how many; 0: none.  The kernel copies, so that nothing can fault, whatever other threads unmap meanwhile.
 * Async-signal-safe, if `errno` is kept.
 */
size_t tdt__peek(void *to, uintptr_t address, size_t size);

#endif
