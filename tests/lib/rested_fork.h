/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef TESTS_RESTED_FORK_H
#define TESTS_RESTED_FORK_H

/*
 * With AddressSanitizer fork() waits until all other threads sleep: a thread that runs may hold a
 * lock of the sanitizer's allocator, which nobody frees in the child.  The C library frees its own.
 */

#include "base/sanitized.h"

#if TDT__ASAN
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static bool rested_thread(const char *tid)
{
	char path[64], state = 'R';
	FILE *file;

	snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", tid);
	file = fopen(path, "re");
	if (file == NULL)
		return true; /* has ended */
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 'R';
	fclose(file);
	return state == 'S';
}

static bool rested_others(void)
{
	DIR *tasks = opendir("/proc/self/task");
	bool all = true;

	if (tasks == NULL)
		return true;
	for (const struct dirent *entry; all && (entry = readdir(tasks)) != NULL;)
		all = entry->d_name[0] == '.' || atoi(entry->d_name) == gettid() ||
		      rested_thread(entry->d_name);
	closedir(tasks);
	return all;
}

/* Some tests have threads that never sleep: those wait for 50 ms. */
__attribute__((weak)) pid_t fork(void)
{
	static const struct timespec one_ms = { .tv_nsec = 1000000 };
	pid_t (*real)(void) = (pid_t (*)(void))dlsym(RTLD_NEXT, "fork");

	for (int i = 0; i < 50 && !rested_others(); i++)
		nanosleep(&one_ms, NULL);
	return real();
}
#endif

#endif
