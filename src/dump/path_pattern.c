// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The patterns of files that are written on a signal. */

#include "dump/path_pattern.h"

#include <stdio.h>

bool tdt__path_of_pattern(char name[PATH_MAX], const char *pattern, pid_t process, time_t now)
{
	size_t n = 0;

	for (; *pattern != '\0' && n < PATH_MAX; pattern++) {
		char kind = pattern[0] == '%' ? pattern[1] : '\0';

		if (kind == 'p' || kind == 't') {
			n += (size_t)snprintf(name + n, PATH_MAX - n, "%lld",
					      kind == 'p' ? (long long)process : (long long)now);
			pattern++;
		} else {
			name[n++] = *pattern;
		}
	}
	if (n >= PATH_MAX)
		return false;
	name[n] = '\0';
	return true;
}
