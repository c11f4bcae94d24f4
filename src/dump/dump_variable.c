// SPDX-License-Identifier: Apache-2.0 OR MIT
/* The value of TDT_DUMP. */

#include "dump/dump_variable.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 15

/* Returns -1 if it is not a number of at most three digits. */
static int number(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits == 0 || digits > 3 || text[digits] != '\0' ? -1 : atoi(text);
}

/* RTMIN, RTMIN+1, RTMAX-1 and so on.  Returns 0 if it is none of them. */
static int real_time_signal(const char *name)
{
	int min = strncmp(name, "RTMIN", 5) == 0, offset;

	if (!min && strncmp(name, "RTMAX", 5) != 0)
		return 0;
	if (name[5] == '\0')
		return min ? SIGRTMIN : SIGRTMAX;
	offset = name[5] == (min ? '+' : '-') ? number(name + 6) : -1;
	if (offset < 0 || offset > SIGRTMAX - SIGRTMIN)
		return 0;
	return min ? SIGRTMIN + offset : SIGRTMAX - offset;
}

static int named_signal(const char *name)
{
	for (int signo = 1; signo < SIGRTMIN; signo++) {
		const char *known = sigabbrev_np(signo);

		if (known != NULL && strcmp(name, known) == 0)
			return signo;
	}
	return real_time_signal(name);
}

/* Returns 0 or less if there is no such signal. */
static int signal_of(const char *name)
{
	if (*name >= '0' && *name <= '9')
		return number(name);
	return named_signal(strncmp(name, "SIG", 3) == 0 ? name + 3 : name);
}

bool tdt__dump_variable(const char *text, struct tdt__dump_choice *choice)
{
	char name[NAME_MAX_LENGTH + 1] = "";
	size_t n = strcspn(text, ":");

	if (n > NAME_MAX_LENGTH)
		return false;
	memcpy(name, text, n);
	choice->signo = signal_of(name);
	choice->path = text[n] == ':' ? text + n + 1 : "";
	return choice->signo > 0 && strlen(choice->path) < PATH_MAX;
}
