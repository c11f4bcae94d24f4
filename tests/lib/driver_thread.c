// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The driver's thread in /proc. */

#include <config.h>

#include "lib/driver_thread.h"

#include <check.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A file of the thread with that name; a new thread has it only once it runs. */
static FILE *find(const char *file)
{
	for (;; usleep(1000)) {
		DIR *tasks = opendir("/proc/self/task");
		struct dirent *entry;
		char path[300], line[64];

		ck_assert_ptr_nonnull(tasks);
		while ((entry = readdir(tasks)) != NULL) {
			FILE *status;
			bool found;

			snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
			status = fopen(path, "r");
			found = status != NULL && fgets(line, sizeof(line), status) != NULL &&
				strcmp(line, "Name:\ttdt-driver\n") == 0;
			if (status != NULL)
				fclose(status);
			if (!found)
				continue;
			snprintf(path, sizeof(path), "/proc/self/task/%s/%s", entry->d_name, file);
			closedir(tasks);
			return fopen(path, "r");
		}
		closedir(tasks);
	}
}

void driver_thread_status(const char *field, char *value, size_t size)
{
	FILE *status = find("status");
	char line[256];

	ck_assert_ptr_nonnull(status);
	while (fgets(line, sizeof(line), status) != NULL) {
		if (strncmp(line, field, strlen(field)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, size, "%s",
			 line + strlen(field) + strspn(line + strlen(field), " \t"));
		fclose(status);
		return;
	}
	ck_abort_msg("no %s", field);
}

long driver_thread_switches(void)
{
	char value[32];

	driver_thread_status("voluntary_ctxt_switches:", value, sizeof(value));
	return atol(value);
}

static bool is_the_call(long number)
{
#ifdef SYS_epoll_wait
	if (number == SYS_epoll_wait)
		return true;
#endif
	return number == SYS_epoll_pwait;
}

/*
 * It is blocked in the call that waits for timers and sockets, not for a lock; or that can't be
 * known here.
 */
static bool waits_for_events(void)
{
	FILE *call = find("syscall");
	char line[32];
	bool waits;
	long number;

	if (call == NULL)
		return true;
	if (fgets(line, sizeof(line), call) == NULL)
		waits = ferror(call);
	else
		waits = sscanf(line, "%ld", &number) == 1 && is_the_call(number);
	fclose(call);
	return waits;
}

long driver_thread_asleep(long switches)
{
	char value[32];
	long now;

	for (;;) {
		now = driver_thread_switches();
		driver_thread_status("State:", value, sizeof(value));
		if (now > switches && value[0] == 'S' && waits_for_events() &&
		    driver_thread_switches() == now)
			return now;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}
