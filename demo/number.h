/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef DEMO_NUMBER_H
#define DEMO_NUMBER_H

/* Numbers on a command line. */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

/*
 * Whether `text` is a number from `min` to `max`, and nothing else.  If so, `*number` is set to
 * it.
 */
static inline bool parse_number(const char *text, unsigned long min, unsigned long max,
				unsigned long *number)
{
	char *end;

	errno = 0;
	*number = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && *number >= min &&
	       *number <= max;
}

#endif
