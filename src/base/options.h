/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The one rule for all public structs that callers fill in and that may grow: the first field is
 * the size of the struct, as the caller's header defines it.
 *
 * This is a header, so that libtdt-rt can use it too, without a symbol that both libraries define.
 */

#include <errno.h>
#include <stddef.h>
#include <string.h>

/*
 * Read `theirs` into `ours`, whose first field is a size_t and becomes `our_size`.  A smaller
 * struct, from an older header, is extended with zeros; NULL gives all zeros.  Returns 0, or
 * -EINVAL if the size is less than that of the size field, or -E2BIG if the struct is larger than
 * ours and the bytes beyond `our_size` are not all zero.  Does not set errno.
 */
static inline int tdt__options_read(void *ours, size_t our_size, const void *theirs)
{
	const unsigned char *bytes = theirs;
	size_t size = 0;

	memset(ours, 0, our_size);
	if (theirs != NULL) {
		memcpy(&size, theirs, sizeof(size));
		if (size < sizeof(size))
			return -EINVAL;
		for (size_t i = our_size; i < size; i++)
			if (bytes[i] != 0)
				return -E2BIG;
		memcpy(ours, theirs, size < our_size ? size : our_size);
	}
	memcpy(ours, &our_size, sizeof(our_size));
	return 0;
}
