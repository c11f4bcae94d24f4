/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Copy `size` bytes from `address` of this process, or fewer: up to the first byte that can't be
 * read.  Returns how many bytes were copied; 0: none.  Any address may be passed.  The kernel does
 * the copying, so nothing faults, even if other threads unmap the memory meanwhile.  Leaves errno
 * as it is.  Async-signal-safe.
 */
size_t tdt__peek(void *to, uintptr_t address, size_t size);
