/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#pragma once

/*
 * The name of the family of a task: all tasks whose names differ in numbers only, as "conn 1" and
 * "conn 22"; or, if they have no names, those that were spawned at one place.
 */

#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"

/* `instead` stands for each number.  `file` NULL or "": unknown. */
static inline void tdt__family_name(char *to, size_t room, const char *name, const char *file,
				    uint32_t line, char instead)
{
	if (name[0] != '\0' || file == NULL || file[0] == '\0')
		tdt__text_without_numbers(to, room, name, instead);
	else
		snprintf(to, room, "spawned at %s:%" PRIu32, tdt__file_name(file), line);
}
