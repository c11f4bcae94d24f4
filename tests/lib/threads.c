// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Threads as /proc shows them. */

#include <config.h>

#include "lib/threads.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/must.h"

/* Count `name`, a directory of /proc/self/task, in.  A thread that has gone meanwhile is none. */
static void count(const char *name, const char *prefix, int *threads, long *slept)
{
	char path[300], line[200], thread[32];
	bool ours = false;
	FILE *file;
	long n;

	snprintf(path, sizeof path, "/proc/self/task/%s/status", name);
	file = fopen(path, "re");
	if (file == NULL)
		return;
	while (fgets(line, sizeof line, file) != NULL) {
		if (sscanf(line, "Name: %31s", thread) == 1)
			ours = strncmp(thread, prefix, strlen(prefix)) == 0;
		if (ours && sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1) {
			++*threads;
			*slept += n;
		}
	}
	fclose(file);
}

static void count_all(const char *prefix, int *threads, long *slept)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;

	MUST(tasks != NULL);
	while ((entry = readdir(tasks)) != NULL)
		if (entry->d_name[0] != '.')
			count(entry->d_name, prefix, threads, slept);
	closedir(tasks);
}

int threads_named(const char *prefix)
{
	int threads = 0;
	long slept = 0;

	count_all(prefix, &threads, &slept);
	return threads;
}

long threads_slept(const char *prefix)
{
	int threads = 0;
	long slept = 0;

	count_all(prefix, &threads, &slept);
	return slept;
}
