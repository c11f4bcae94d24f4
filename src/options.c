// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Structs of callers that were compiled against another version of the headers. */

#include <config.h>

#include "options.h"

#include <errno.h>
#include <string.h>

int tdt__options_read(void *ours, size_t our_size, const void *theirs)
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
