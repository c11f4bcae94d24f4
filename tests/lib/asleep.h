/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_ASLEEP_H
#define TESTS_ASLEEP_H

/*
 * Waiting until a thread is in the system call that it stays in: what it reports before the call
 * does not say so, as it may lose its CPU in between.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/must.h"

/* `thread` is its id; 0: it has none yet. */
static inline void wait_until_asleep(const atomic_int *thread)
{
	char path[64], line[256] = "", *name_end = NULL;

	while (name_end == NULL || strncmp(name_end, ") S", 3) != 0) {
		FILE *file;

		usleep(1000);
		snprintf(path, sizeof path, "/proc/self/task/%d/stat", atomic_load(thread));
		file = fopen(path, "re");
		if (file == NULL)
			continue;
		MUST(fgets(line, sizeof line, file) != NULL);
		fclose(file);
		name_end = strrchr(line, ')');
	}
}

#endif
