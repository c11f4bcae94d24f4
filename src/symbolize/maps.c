// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Finding in /proc/self/maps which file is mapped at an address. */

#include "symbolize/maps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The path in a line of /proc/self/maps, if `address` lies in that mapping; NULL: it has no path,
 * or there is no memory.
 */
static char *mapped_path(char *line, uintptr_t address)
{
	uintptr_t start, end;
	int path = 0;

	if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &start, &end, &path) < 2 ||
	    address < start || address >= end || line[path] != '/')
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return strdup(line + path);
}

char *tdt__maps_path(uintptr_t address)
{
	char *line = NULL, *path = NULL;
	size_t size = 0;
	FILE *maps = fopen("/proc/self/maps", "re");

	while (maps != NULL && path == NULL && getline(&line, &size, maps) >= 0)
		path = mapped_path(line, address);
	free(line);
	if (maps != NULL)
		fclose(maps);
	return path;
}
