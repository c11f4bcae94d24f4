// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The names of the system calls that the system's headers knew when the library was built. */

#include "base/syscall_name.h"

#include <stddef.h>
#include <sys/syscall.h>

static const struct {
	int32_t number;
	const char *name;
} calls[] = {
#include "src/syscall_names.inc"
};

const char *tdt__syscall_name(int32_t number)
{
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		if (calls[i].number == number)
			return calls[i].name;
	return NULL;
}
