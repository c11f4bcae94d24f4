/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_OPTIONS_H
#define TDT_SRC_OPTIONS_H

/*
 * The one rule for all public structs that callers fill in and that may grow: the first field is the struct's size as
 * the caller's header had it.
 */

#include <stddef.h>

/*
 * Read `theirs` into `ours`, whose first field is a size_t and becomes `our_size`.  A smaller struct, of an older
 * header, is extended with zeros; NULL gives all zeros.  Returns 0; -EINVAL: its size is less than the size field;
 * -E2BIG: it is larger than ours and not all zeros behind.  Does not set errno.
 */
int tdt__options_read(void *ours, size_t our_size, const void *theirs);

#endif
