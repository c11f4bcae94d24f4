/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_BASE_ARRAY_H
#define TDT_SRC_BASE_ARRAY_H

/* Arrays on the heap that grow, as the owner appends entries. */

#include <stdbool.h>
#include <stddef.h>

#include "base/index.h"

/*
 * Make room for another entry of `size` bytes behind the first `n` ones.  `array` points to the
 * pointer to the array, which the owner frees; `*room` is for how many entries there is room, at
 * first 0.  False: there is no memory, and the array is as it was.
 */
bool tdt__array_grow(void *array, size_t n, size_t *room, size_t size);

/* The same of an array whose entries are in an index. */
bool tdt__array_grow_indexed(void *array, size_t n, size_t *room, size_t size,
			     struct tdt__index *index);

#endif
