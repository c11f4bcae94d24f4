// SPDX-License-Identifier: Apache-2.0 OR MIT
/* Profiles over HTTP: see metrics_profile.h. */

#include "cli/metrics_profile.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text.h"
#include "cli/processes.h"
#include "cli/profile.h"
#include "cli/wait.h"

#define USUAL_SECONDS 10
#define MOST_SECONDS 60
#define MORE_SECONDS 60 /* for the names, and for the profile without them */

/* Set `*number` to that of "name=NUMBER" in the query, if it is there.  False: it is none. */
static bool number_in(const char *query, const char *name, long most, long *number)
{
	size_t length = strlen(name);

	while (*query != '\0' && *query != ' ') {
		size_t n = strcspn(query, "& ");

		if (n >= length && memcmp(query, name, length) == 0) {
			char *end;
			long found = strtol(query + length, &end, 10);

			if (!tdt__is_digit(query[length]) || end != query + n || found < 1 ||
			    found > most)
				return false;
			*number = found;
		}
		query += n + (query[n] == '&');
	}
	return true;
}

/* An apart_fn. */
static int profile_in_silence(FILE *out, void *options)
{
	int error = apart_silence();

	if (error == 0)
		error = wait_begin();
	return error == 0 ? profile_target(out, options) : error;
}

/* Whether the pages of the server have that process. */
static bool is_served(const struct options *server, long pid)
{
	size_t n;
	pid_t *pids = processes_all(server, &n);
	bool found = false;

	for (size_t i = 0; pids != NULL && i < n; i++)
		found = found || pids[i] == pid;
	free(pids);
	return found;
}

int metrics_profile_start(const struct options *server, const char *query, struct apart *apart)
{
	struct options options = { .target = server->target,
				   .print.format = PROFILE_PPROF,
				   .print.color = TDT_PRINT_NO,
				   .print.utf8 = TDT_PRINT_NO,
				   .frequency = 19,
				   .states = (1u << TDT__PROFILE_STATES) - 1,
				   .passive = true };
	long seconds = USUAL_SECONDS, pid = 0;
	char target[16];
	int error;

	if (!server->groups)
		return -EPERM;
	if (!number_in(query, "seconds=", MOST_SECONDS, &seconds) ||
	    !number_in(query, "pid=", INT_MAX, &pid) || (pid != 0) != server->all_processes)
		return -EINVAL;
	if (pid != 0 && !is_served(server, pid))
		return -ESRCH;
	if (pid != 0) {
		snprintf(target, sizeof target, "%ld", pid);
		options.target = target;
	}
	options.duration = (uint64_t)seconds * TDT__SECOND;
	seconds += MORE_SECONDS;
	error = apart_start(apart, profile_in_silence, &options, (unsigned)seconds);
	return error == 0 ? (int)seconds : error;
}
