/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TDT_SRC_BASE_TEXT_H
#define TDT_SRC_BASE_TEXT_H

/* Questions about strings. */

#include <stdbool.h>
#include <string.h>

static inline bool tdt__starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

#endif
