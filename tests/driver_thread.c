// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The driver's thread in /proc. */

#include <config.h>

#include "driver_thread.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The status file of the thread with that name; a new thread has it only once it runs. */
static FILE *find(void)
{
	for (;;) {
		DIR *tasks = opendir("/proc/self/task");
		struct dirent *entry;
		char path[300], line[64];

		ck_assert_ptr_nonnull(tasks);
		while ((entry = readdir(tasks)) != NULL) {
			FILE *status;

			snprintf(path, sizeof(path), "/proc/self/task/%s/status", entry->d_name);
			status = fopen(path, "r");
			if (status != NULL && fgets(line, sizeof(line), status) != NULL &&
			    strcmp(line, "Name:\ttdt-driver\n") == 0) {
				closedir(tasks);
				return status;
			}
			if (status != NULL)
				fclose(status);
		}
		closedir(tasks);
	}
}

void driver_thread_status(const char *field, char *value, size_t size)
{
	FILE *status = find();
	char line[256];

	while (fgets(line, sizeof(line), status) != NULL) {
		if (strncmp(line, field, strlen(field)) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		snprintf(value, size, "%s", line + strlen(field) + strspn(line + strlen(field), " \t"));
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

long driver_thread_asleep(long switches)
{
	char value[32];
	long now;

	for (;;) {
		now = driver_thread_switches();
		driver_thread_status("State:", value, sizeof(value));
		if (now > switches && value[0] == 'S' && driver_thread_switches() == now)
			return now;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}
