/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The names of mutexes, channels and sockets, for traces and dumps. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Replace `*name` by a copy of `text`, or by NULL if `text` is NULL.  Returns 0 or -ENOMEM, and
 * then sets errno and changes nothing.
 */
static inline int tdt__name_set(char **name, const char *text)
{
	size_t size = text != NULL ? strlen(text) + 1 : 0;
	char *copy = text != NULL ? malloc(size) : NULL;

	if (text != NULL && copy == NULL)
		return -ENOMEM;
	if (copy != NULL)
		memcpy(copy, text, size);
	free(*name);
	*name = copy;
	return 0;
}
