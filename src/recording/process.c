// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Whether a process that records still runs: see process.h. */

#include "recording/process.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/proc_text.h"

/* The name of the program, in parentheses, may contain anything. */
uint64_t tdt__process_start(uint64_t pid)
{
	char text[1024], path[32], *at;

	snprintf(path, sizeof path, "/proc/%" PRIu64 "/stat", pid);
	tdt__proc_text(AT_FDCWD, path, text, sizeof text);
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	return at != NULL ? strtoull(at, NULL, 10) : 0;
}

uint64_t tdt__process_namespace(void)
{
	struct stat about;

	return stat("/proc/self/ns/pid", &about) == 0 ? about.st_ino : 0;
}

#define LIFE_SECONDS 60 /* a process shows life each second, unless it is stopped */

/* A sign that is still to come is one from before the machine was started again. */
static bool has_shown_life(const struct tdt_recording *header)
{
	struct timespec now;
	uint64_t seconds = header->alive / (uint64_t)TDT__SECOND;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return header->alive != 0 && seconds <= (uint64_t)now.tv_sec &&
	       (uint64_t)now.tv_sec < seconds + LIFE_SECONDS;
}

/*
 * kill() knows of each process, also where /proc hides it (hidepid), is missing, or cannot be read
 * for lack of a descriptor.  In another PID namespace the numbers mean other processes; without
 * /proc it is unknown whether they do, so that both must say that the process is gone.
 */
bool tdt__recorded_process_gone(const struct tdt_recording *header, uint64_t pid, uint64_t start)
{
	uint64_t ours = tdt__process_namespace(), now;

	if (header->pid_namespace != 0 && header->pid_namespace != ours &&
	    (ours != 0 || has_shown_life(header)))
		return !has_shown_life(header);
	if (pid > INT32_MAX || (kill((pid_t)pid, 0) != 0 && errno == ESRCH))
		return true;
	now = tdt__process_start(pid);
	return now != 0 && now != start;
}
