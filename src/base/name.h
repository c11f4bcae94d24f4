/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* Names of tasks and of objects: the library keeps their first bytes. */

#include <stddef.h>
#include <string.h>

#define TDT__NAME_MAX 63

/* How many bytes of a name are kept: at most the maximum, and no part of a UTF-8 character. */
static inline size_t tdt__name_kept(const char *name, size_t length)
{
	if (length <= TDT__NAME_MAX)
		return length;
	length = TDT__NAME_MAX;
	while (length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static inline size_t tdt__name_length(const char *name)
{
	return tdt__name_kept(name, strnlen(name, TDT__NAME_MAX + 1));
}

/* Copy what is kept of `name`, and end it with NUL. */
static inline void tdt__name_copy(char to[TDT__NAME_MAX + 1], const char *name)
{
	size_t length = tdt__name_length(name);

	memcpy(to, name, length);
	to[length] = '\0';
}
