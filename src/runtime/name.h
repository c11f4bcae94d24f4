/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/* The names of mutexes, channels and sockets, for traces and dumps. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/result.h"

/*
 * Replace `*name` by a copy of `text`, or by NULL if `text` is NULL.  Returns 0; or -ENOMEM or
 * -EINVAL (`name` is NULL), and then sets errno and changes nothing.
 */
static inline int tdt__name_set(char **name, const char *text)
{
	char *copy;

	if (name == NULL)
		return tdt__result(-EINVAL);
	copy = text != NULL ? strdup(text) : NULL;
	if (text != NULL && copy == NULL)
		return -ENOMEM;
	free(*name);
	*name = copy;
	return 0;
}
